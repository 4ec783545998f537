-- job_state: no change. A job's state, and what it ended with.
-- KEYS    base (also: state jobs vitals active log takes runs holes completed failed delayed prioritized waiting-children)
-- ARGV    id
-- RETURNS {state or 'unknown', returnvalue (JSON text) or failed reason or ''}, or {'completed', '', 1} when the result is large (lib/large)
-- ERRORS  none      EVENTS none      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#getState, #waitUntilFinished
local base = KEYS[1]
local id = ARGV[1]

-- @include lib/state
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate

local job = locate(id)
if not job then return { 'unknown', '' } end
if job.state ~= 'completed' and job.state ~= 'failed' then return { job.state, '' } end
local vitals = job.record and stored().vitals(redis.call('HGET', base .. 'vitals', id)) or frame_vitals(job)
if job.state == 'completed' and vitals.lr then return { job.state, '', 1 } end
return { job.state, (job.state == 'completed' and (vitals.rv or 'null') or vitals.fr) or '' }
