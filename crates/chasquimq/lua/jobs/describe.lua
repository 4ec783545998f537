-- describe: all there is to know of a located job. Appends id, state, body (or what stands for it: Frame.place_apart), state fields (MessagePack),
-- stack traces (JSON text) or ''.
local Frame = require('frame')
local Locate = require('locate')
local Stored = require('stored')

local function body_of(queue, job)
  return job.body or Frame.place_apart(queue, job.first, job.blob, job.offset) or Locate.frame_body(queue, job)
end

local function describe(queue, job, out)
  local fields
  if job.record then
    fields = Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id))
    if job.active then Stored.start(fields, job.active) end
  else
    fields = Locate.frame_fields(queue, job)
  end
  out[#out + 1] = job.id
  out[#out + 1] = job.state
  out[#out + 1] = body_of(queue, job)
  out[#out + 1] = cmsgpack.pack(fields)
  out[#out + 1] = job.record and redis.call('HGET', queue.base .. 'traces', job.id) or ''
end

return {
  describe = describe,
}
