-- job_state: no change. A job's state, and what it ended with.
-- KEYS    base (also: state jobs vitals active log takes runs holes completed failed delayed prioritized waiting-children)
-- ARGV    id
-- RETURNS {state or 'unknown', returnvalue (JSON text) or failed reason or ''}, or {'completed', '', 1} when the result is large (jobs/large)
-- ERRORS  none      EVENTS none      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#getState, #waitUntilFinished
-- FLAGS   no-writes
local Find = require('find')
local Locate = require('locate')
local State = require('state')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local id = args[1]

  local queue = State.open(base)

  local job = Find.locate(queue, id)
  if not job then return { 'unknown', '' } end
  if job.state ~= 'completed' and job.state ~= 'failed' then return { job.state, '' } end
  local fields = job.record and Stored.fields(redis.call('HGET', base .. 'vitals', id)) or Locate.frame_fields(queue, job)
  if job.state == 'completed' and fields.lr then return { job.state, '', 1 } end
  return { job.state, (job.state == 'completed' and (fields.rv or 'null') or fields.fr) or '' }
end
