-- count_jobs: no change. Numbers of jobs by state.
-- KEYS    base (also: state failed delayed prioritized waiting-children)
-- ARGV    none
-- RETURNS {waiting, active, completed, failed, delayed, prioritized, waiting-children}
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#getJobCounts
-- FLAGS   no-writes
local State = require('state')

return function(keys)
  local base = keys[1]
  local queue = State.open(base)
  local counts = { queue.waiting, queue.active, queue.completed }
  for _, set in ipairs({ 'failed', 'delayed', 'prioritized', 'waiting-children' }) do
    counts[#counts + 1] = redis.call('ZCARD', base .. set)
  end
  return counts
end
