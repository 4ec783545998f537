-- change_priority: waiting | prioritized -> waiting | prioritized, by the job's new priority; any other state -> the same state.
-- KEYS    base (also: state meta jobs vitals active log front takes frames runs holes gone completed failed delayed prioritized
--         waiting-children)
-- ARGV    id, priority (0 = none), lifo (1 = before all others without a priority, or of this one)
-- RETURNS 0 | -1
-- ERRORS  -1 missing job      EVENTS none      COST O(log n), O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#changePriority
-- FLAGS   allow-oom
local base = KEYS[1]
local id, priority, lifo = ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- @include lib/state
-- @include lib/line
-- @include lib/priority
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate

local job = locate(id)
if not job then return -1 end
local vitals = detach(job)
vitals.pr = priority
if priority ~= 0 then expect_priorities() end
store_vitals(id, vitals)
if job.state == 'waiting' then
  leave_line(job)
elseif job.state == 'prioritized' then
  redis.call('ZREM', base .. 'prioritized', id)
end
if job.state == 'waiting' or job.state == 'prioritized' then
  if lifo == '1' then enter_front({ id }, { [id] = 'front' }) else enter_line({ id }) end
end
save_state()
return 0
