-- describe: all there is to know of a located job. Appends id, state, body (or what stands for it: Frame.given_bodies), state fields (MessagePack),
-- stack traces (JSON text) or ''.
local Locate = require('locate')
local Stored = require('stored')

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
  out[#out + 1] = job.body or Locate.given_body(queue, job)
  out[#out + 1] = cmsgpack.pack(fields)
  out[#out + 1] = job.record and redis.call('HGET', queue.base .. 'traces', job.id) or ''
end

return {
  describe = describe,
}
