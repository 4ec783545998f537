-- count_priorities: no change. How many jobs wait, by priority.
-- KEYS    base (also: state prioritized)
-- ARGV    priorities (MessagePack: {number, ...})
-- RETURNS {count, ...} in the same order; of 0: those without one
-- ERRORS  none      EVENTS none      COST O(priorities * log prioritized)
-- SOURCE  BullMQ 6.7 Queue#getCountsPerPriority
-- FLAGS   no-writes
local Prioritized = require('prioritized')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local priorities = cmsgpack.unpack(args[1])

  local queue = State.open(base)

  local counts = {}
  for i, priority in ipairs(priorities) do
    local low = priority * Prioritized.PRIORITY_STEP
    counts[i] = priority == 0 and queue.waiting
      or redis.call('ZCOUNT', base .. 'prioritized', low, '(' .. State.whole(low + Prioritized.PRIORITY_STEP))
  end
  return counts
end
