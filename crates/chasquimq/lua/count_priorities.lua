-- count_priorities: no change. Numbers of jobs in line by priority.
-- KEYS    base (also: state prioritized)
-- ARGV    priorities (MessagePack: {number, ...})
-- RETURNS {count, ...} in the same order; of 0: the jobs in line that have none
-- ERRORS  none      EVENTS none      COST O(priorities * log prioritized)
-- SOURCE  BullMQ 6.7 Queue#getCountsPerPriority
-- FLAGS   no-writes
local Priority = require('priority')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local priorities = cmsgpack.unpack(args[1])

  local queue = State.open(base)

  local counts = {}
  for i, priority in ipairs(priorities) do
    local low = priority * Priority.PRIORITY_STEP
    counts[i] = priority == 0 and queue.waiting
      or redis.call('ZCOUNT', base .. 'prioritized', low, '(' .. State.whole(low + Priority.PRIORITY_STEP))
  end
  return counts
end
