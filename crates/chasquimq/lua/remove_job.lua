-- remove_job: any state but active -> gone.
-- KEYS    base (also: state meta jobs vitals traces active log front takes frames runs holes gone completed failed delayed prioritized
--         waiting-children events trims logged lease:<owner> logs:<id> de:<id>)
-- ARGV    now_ms (epoch ms), id
-- RETURNS 1 removed, or there was no such job | 0 active
-- ERRORS  none      EVENTS removed      COST O(log n), O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#remove, Queue#remove
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id = tonumber(ARGV[1]), ARGV[2]

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate

local job = locate(id)
if not job then return 1 end
if job.state == 'active' then
  local owner = job.record and job.active[3] or job.take[3]
  if redis.call('EXISTS', base .. 'lease:' .. owner) == 1 then return 0 end
  detach(job)
  redis.call('HDEL', base .. 'active', id)
  S.active = S.active - 1
elseif job.state == 'waiting' then
  leave_line(job)
elseif job.record then
  redis.call('ZREM', base .. job.state, id)
  if job.state == 'completed' then S.completed = S.completed - 1 end
else
  leave_run(job)
  S.completed = S.completed - 1
end
if job.record then drop_records({ id }) end
emit_job('removed', id, job.state == 'waiting' and 'wait' or job.state)
flush_events(now_ms)
return 1
