-- count_jobs: no change. Numbers of jobs by state.
-- KEYS    base (also: state log front takes active completed failed delayed prioritized waiting-children)
-- ARGV    none
-- RETURNS {waiting (in groups as well), active, completed, failed, delayed, prioritized, waiting-children}
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#getJobCounts
-- FLAGS   no-writes
local Groups = require('groups')
local State = require('state')

-- None, where the keys that would hold them were lost (states/mend).
local function count_in(number, ...)
  if number <= 0 then return 0 end
  return redis.call('EXISTS', ...) > 0 and number or 0
end

return function(keys)
  local base = keys[1]
  local queue = State.open(base)
  local counts = { count_in(queue.waiting, base .. 'log', base .. 'front') + Groups.count(queue), count_in(queue.active, base .. 'takes', base .. 'active'),
    count_in(queue.completed, base .. 'completed') }
  for _, set in ipairs({ 'failed', 'delayed', 'prioritized', 'waiting-children' }) do
    counts[#counts + 1] = redis.call('ZCARD', base .. set)
  end
  return counts
end
