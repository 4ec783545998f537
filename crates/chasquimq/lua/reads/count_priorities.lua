-- count_priorities: no change. How many jobs wait, by priority.
-- KEYS    base (also: state prioritized group:<group>)
-- ARGV    priorities (MessagePack: {number, ...}), group ('' = those that have none)
-- RETURNS {count, ...} in the same order; of 0: those without one
-- ERRORS  none      EVENTS none      COST O(priorities * log prioritized)
-- SOURCE  BullMQ 6.7 Queue#getCountsPerPriority
-- FLAGS   no-writes
local Groups = require('groups')
local Prioritized = require('prioritized')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local priorities, group = cmsgpack.unpack(args[1]), args[2]

  local queue = State.open(base)

  local counts, set = {}, group == '' and base .. 'prioritized' or Groups.key_of({ base = base }, group)
  for i, priority in ipairs(priorities) do
    local low = priority * Prioritized.PRIORITY_STEP
    counts[i] = priority == 0 and group == '' and queue.waiting
      or redis.call('ZCOUNT', set, low, '(' .. State.whole(low + Prioritized.PRIORITY_STEP))
  end
  return counts
end
