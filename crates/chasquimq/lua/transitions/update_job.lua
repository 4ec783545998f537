-- update_job: any state -> the same state. Replaces a job's data or its progress.
-- KEYS    base (also: state meta jobs vitals large active log takes frames apart:<first> runs holes completed failed delayed prioritized
--         waiting-children events trims)
-- ARGV    now_ms (epoch ms), id, what (data | large: data that is to lie apart | progress), value (JSON text)
-- RETURNS 0 | -1
-- ERRORS  -1 missing job      EVENTS progress      COST O(log n), O(frame) for a job of a frame
-- SOURCE  BullMQ 6.7 Job#updateData, #updateProgress
local Events = require('events')
local Find = require('find')
local Large = require('large')
local Locate = require('locate')
local State = require('state')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local now_ms, id, what, value = tonumber(args[1]), args[2], args[3], args[4]

  local queue = State.open(base)

  local job = Find.locate(queue, id)
  if not job then return -1 end
  local fields = Locate.detach(queue, job)
  if what == 'progress' then
    fields.p = value
    Locate.store_fields(queue, id, fields)
    Events.emit_job(queue, 'progress', id, nil, 'data', value)
    Events.flush_events(queue, now_ms)
  else
    local apart = fields.ld or what == 'large'
    if apart then
      fields.ld = Large.put_data(queue, id, value)
      Locate.store_fields(queue, id, fields)
    end
    local body = Stored.body(job.body)
    body[4] = apart and '' or value
    redis.call('HSET', base .. 'jobs', id, cmsgpack.pack(body))
  end
  State.save_state(queue)
  return 0
end
