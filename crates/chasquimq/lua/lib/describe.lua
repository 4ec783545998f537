-- describe: all there is to know of a located job. Appends id, state, body, vitals (MessagePack), stack traces (JSON text) or ''.
local Locate = require('locate')
local Stored = require('stored')

local function describe(queue, job, out)
  local vitals
  if job.record then
    vitals = Stored.vitals(redis.call('HGET', queue.base .. 'vitals', job.id))
    if job.active then Stored.start(vitals, job.active) end
  else
    vitals = Locate.frame_vitals(queue, job)
  end
  out[#out + 1] = job.id
  out[#out + 1] = job.state
  out[#out + 1] = job.body or Locate.frame_body(queue, job)
  out[#out + 1] = cmsgpack.pack(vitals)
  out[#out + 1] = job.record and redis.call('HGET', queue.base .. 'traces', job.id) or ''
end

return {
  describe = describe,
}
