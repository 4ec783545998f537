-- log_job: any state -> the same state. Adds a row to a job's log.
-- KEYS    base (also: state jobs vitals active log takes frames runs holes completed failed delayed prioritized
--         waiting-children logged logs:<id>)
-- ARGV    id, row, keep (newest rows kept; 0 = all)
-- RETURNS rows now stored | -1
-- ERRORS  -1 missing job      EVENTS none      COST O(1), O(log n + frame) for a job of a frame
-- SOURCE  BullMQ 6.7 Job#log
local Find = require('find')
local Locate = require('locate')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local id, row, keep = args[1], args[2], tonumber(args[3])

  -- a job that has a record, as after its first row, needs nothing of what gives it one
  if redis.call('HEXISTS', base .. 'jobs', id) == 0 then
    local queue = State.open(base)
    local job = Find.locate(queue, id)
    if not job then return -1 end
    Locate.detach(queue, job)
    State.save_state(queue)
  end
  local rows = redis.call('RPUSH', base .. 'logs:' .. id, row)
  if rows == 1 then redis.call('SADD', base .. 'logged', id) end
  if keep > 0 and rows > keep then
    redis.call('LTRIM', base .. 'logs:' .. id, -keep, -1)
    rows = keep
  end
  return rows
end
