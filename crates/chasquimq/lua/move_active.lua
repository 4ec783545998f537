-- move_active: active -> delayed | front of waiting | front of its priority, by the one who holds the job. Attempts are not counted.
-- KEYS    base (also: state meta jobs vitals active log front takes frames runs holes completed failed delayed delays prioritized
--         waiting-children events trims wake limiter lease:<owner>)
-- ARGV    now_ms (epoch ms), id, token (0 = anyone), due_ms (0 = to the front)
-- RETURNS 0, to the front: ms that the window of the rate limit still lasts | -1 | -2 | -3 | -6
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -6 lock mismatch      EVENTS waiting, delayed      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#moveToDelayed, #moveToWait
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id, token, due_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/lock

local job = locate(id)
local code = check_lock(job, token)
-- back to the line without a lock: there is nothing to do
if code == -3 and due_ms == 0 then return 0 end
if code ~= 0 then return code end
local vitals = detach(job)
redis.call('HDEL', base .. 'active', id)
S.active = S.active - 1
free_lock(job.active[3])
stored().start(vitals, job.active)
vitals.d = due_ms > 0 and math.max(due_ms - now_ms, 0) or nil
store_vitals(id, vitals)
if due_ms == 0 then
  enter_front({ id }, { [id] = 'front' })
  emit_job('waiting', id, 'active')
else
  delay_jobs({ id }, { due_ms })
  emit_job('delayed', id, nil, 'delay', whole(due_ms))
end
wake()
flush_events(now_ms)
return due_ms == 0 and math.max(redis.call('PTTL', base .. 'limiter'), 0) or 0
