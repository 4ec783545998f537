-- describe: all there is to know of a located job. Appends id, state, body, vitals (MessagePack), stack traces (JSON text) or ''.
local function describe(job, out)
  local vitals
  if job.record then
    vitals = stored().vitals(redis.call('HGET', base .. 'vitals', job.id))
    if job.active then stored().start(vitals, job.active) end
  else
    vitals = frame_vitals(job)
  end
  out[#out + 1] = job.id
  out[#out + 1] = job.state
  out[#out + 1] = job.body or frame_body(job)
  out[#out + 1] = cmsgpack.pack(vitals)
  out[#out + 1] = job.record and redis.call('HGET', base .. 'traces', job.id) or ''
end
