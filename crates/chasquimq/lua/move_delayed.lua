-- move_delayed: delayed -> waiting | prioritized (promote), or delayed -> delayed with another due time.
-- KEYS    base (also: state meta jobs vitals active log takes runs holes completed failed delayed delays prioritized waiting-children
--         events trims wake)
-- ARGV    now_ms (epoch ms), id, due_ms (0 = promote)
-- RETURNS 0 | -1 | -3
-- ERRORS  -1 missing job, -3 not delayed      EVENTS waiting, delayed      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#promote, #changeDelay
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id, due_ms = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate

if not locate(id) then return -1 end
if redis.call('ZREM', base .. 'delayed', id) == 0 then return -3 end
if due_ms == 0 then
  enter_line({ id })
  emit_job('waiting', id, 'delayed')
else
  local vitals = stored().vitals(redis.call('HGET', base .. 'vitals', id))
  vitals.d = due_ms - now_ms
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
  delay_jobs({ id }, { due_ms })
  emit_job('delayed', id, nil, 'delay', whole(due_ms))
end
wake()
flush_events(now_ms)
return 0
