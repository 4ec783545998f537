-- amend_job: any state -> the same state. Replaces a job's data or its progress.
-- KEYS    base (also: state meta jobs vitals large active log takes frames runs holes completed failed delayed prioritized
--         waiting-children events trims)
-- ARGV    now_ms (epoch ms), id, what (data | large: data that is to lie apart | progress), value (JSON text)
-- RETURNS 0 | -1
-- ERRORS  -1 missing job      EVENTS progress      COST O(log n), O(frame) for a job of a frame
-- SOURCE  BullMQ 6.7 Job#updateData, #updateProgress
local base = KEYS[1]
local now_ms, id, what, value = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate

local job = locate(id)
if not job then return -1 end
local vitals = detach(job)
if what == 'progress' then
  vitals.p = value
  store_vitals(id, vitals)
  emit_job('progress', id, nil, 'data', value)
  flush_events(now_ms)
else
  local apart = vitals.ld or what == 'large'
  if apart then
    vitals.ld = #value
    redis.call('HSET', base .. 'large', 'd' .. id, value)
    store_vitals(id, vitals)
  end
  local body = stored().body(job.body)
  body[4] = apart and '' or value
  redis.call('HSET', base .. 'jobs', id, cmsgpack.pack(body))
end
save_state()
return 0
