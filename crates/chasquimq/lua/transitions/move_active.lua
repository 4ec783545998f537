-- move_active: active -> delayed | front of waiting | front of its priority, by the one who holds the job. Attempts are not counted.
-- KEYS    base (also: state meta jobs vitals active log front takes frames apart:<first> runs holes completed failed delayed delays prioritized
--         waiting-children events trims wake limiter lease:<owner> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, token (0 = anyone), due_ms (0 = to the front)
-- RETURNS 0, to the front: ms that the window of the rate limit still lasts | -1 | -2 | -3 | -6
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -6 lock mismatch      EVENTS waiting, delayed      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#moveToDelayed, #moveToWait
-- FLAGS   allow-oom
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local GroupOrder = require('group_order')
local Locate = require('locate')
local Lock = require('lock')
local Memo = require('memo')
local Prioritized = require('prioritized')
local State = require('state')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, token, due_ms = args[5], args[6], tonumber(args[7])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local job = Find.locate(queue, id)
  local code = Lock.check_lock(queue, job, token)
  -- back to the waiting list without a lock: there is nothing to do
  if code == -3 and due_ms == 0 then return 0 end
  if code ~= 0 then return code end
  local fields = Lock.leave_active(queue, job)
  fields.d = due_ms > 0 and math.max(due_ms - now_ms, 0) or nil
  Locate.store_fields(queue, id, fields)
  local is_sooner = false
  if due_ms == 0 then
    Prioritized.enter_front(queue, { id }, { [id] = 'front' })
    Events.emit_job(queue, 'waiting', id, 'active')
  else
    GroupOrder.hold(queue, job.active[7], id)
    is_sooner = Delayed.delay_jobs(queue, { id }, { due_ms })
    Events.emit_job(queue, 'delayed', id, nil, 'delay', State.whole(due_ms))
  end
  -- what waits may start in its place
  if is_sooner then WaitingList.wake(queue) else WaitingList.wake_for_work(queue) end
  Events.flush_events(queue, now_ms)
  local reply = due_ms == 0 and math.max(redis.call('PTTL', base .. 'limiter'), 0) or 0
  Memo.remember(base, client, slot, number, reply)
  return reply
end
