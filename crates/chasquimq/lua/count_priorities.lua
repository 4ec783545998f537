-- count_priorities: no change. Numbers of jobs in line by priority.
-- KEYS    base (also: state prioritized)
-- ARGV    priorities (MessagePack: {number, ...})
-- RETURNS {count, ...} in the same order; of 0: the jobs in line that have none
-- ERRORS  none      EVENTS none      COST O(priorities * log prioritized)
-- SOURCE  BullMQ 6.7 Queue#getCountsPerPriority
local base = KEYS[1]
local priorities = cmsgpack.unpack(ARGV[1])

-- @include lib/state
-- @include lib/line
-- @include lib/priority

local counts = {}
for i, priority in ipairs(priorities) do
  local low = priority * PRIORITY_STEP
  counts[i] = priority == 0 and S.waiting
    or redis.call('ZCOUNT', base .. 'prioritized', low, '(' .. whole(low + PRIORITY_STEP))
end
return counts
