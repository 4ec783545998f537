-- overlap: runs of a scheduler that are not to run side by side. A run that has started and not ended owns the deduplication id repeat:<scheduler>
-- (rules/deduplication): by that whatever ends it, or removes it, lets the next one run.
--   scheduler-runs  hash: scheduler -> when its latest such run started, and ended (0 = it has not): two doubles, epoch ms
-- A run is judged when a worker takes it: SKIP drops one that was due while the one before ran; QUEUE delays it until that has ended. One that was due before
-- that started was missed, and is made up for: it waits in either case.
-- State fields of the run that others wait for: hd, their ids.
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local GroupOrder = require('group_order')
local Locate = require('locate')
local Lock = require('lock')
local PendingIteration = require('pending_iteration')
local Records = require('records')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local SKIP = 1
-- A run that waits is looked at again after that long: nothing told it of the end of the one before where a worker of an older release ran that.
local LOOK_AGAIN_MS = 5000

local function dedup_id(scheduler) return 'repeat:' .. scheduler end

-- The run that has not ended, if there is one; and when the latest one started and ended.
local function unended(queue, scheduler)
  local owner = redis.call('GET', queue.base .. 'de:' .. dedup_id(scheduler))
  local found = owner and PendingIteration.scheduler_of(owner) == scheduler and Find.locate(queue, owner)
  local is_on = found and found.state ~= 'completed' and found.state ~= 'failed'
  local raw = redis.call('HGET', queue.base .. 'scheduler-runs', scheduler)
  local started, ended = nil, nil
  if raw and #raw == 16 then started, ended = struct.unpack('<dd', raw) end
  return is_on and owner or nil, started, ended
end

local function note_run(queue, scheduler, started, ended)
  redis.call('HSET', queue.base .. 'scheduler-runs', scheduler, struct.pack('<dd', started, ended))
end

local function begin(queue, scheduler, job, now_ms)
  local fields = Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id))
  fields.di = dedup_id(scheduler)
  redis.call('SET', queue.base .. 'de:' .. fields.di, job.id)
  Locate.store_fields(queue, job.id, fields)
  note_run(queue, scheduler, now_ms, 0)
end

-- An active job that is not to run is gone.
local function drop(queue, job)
  Lock.leave_active(queue, job)
  Records.drop_records(queue, { job.id })
  Events.emit_job(queue, 'removed', job.id, 'active')
  WaitingList.wake_for_work(queue)
end

-- Notes in a run's state fields that another waits for it; false where they say so already.
local function note_held(fields, id)
  fields.hd = fields.hd or {}
  for _, held in ipairs(fields.hd) do
    if held == id then return false end
  end
  WaitingList.append(fields.hd, id)
  return true
end

-- An active job waits until the owner has ended. Its start is not counted.
local function hold(queue, job, owner, now_ms)
  local fields, of_owner = Lock.leave_active(queue, job), Stored.fields(redis.call('HGET', queue.base .. 'vitals', owner))
  local due_ms = now_ms + LOOK_AGAIN_MS
  fields.as, fields.d = job.active[2] - 1, LOOK_AGAIN_MS
  Locate.store_fields(queue, job.id, fields)
  if note_held(of_owner, job.id) then Locate.store_fields(queue, owner, of_owner) end
  GroupOrder.hold(queue, job.active[7], job.id)
  local is_sooner = Delayed.delay_jobs(queue, { job.id }, { due_ms })
  Events.emit_job(queue, 'delayed', job.id, nil, 'delay', State.whole(due_ms))
  if is_sooner then WaitingList.wake(queue) else WaitingList.wake_for_work(queue) end
end

-- What is to become of an active iteration of this slot that its holder is about to run: 'run' it, 'skip' it, or 'hold' it until the run that is told as
-- well has ended. Tells thirdly whether it has started before, or is late because of the one before: it was not missed then.
local function judge(queue, scheduler, slot, overlap, job)
  if overlap == 0 then return 'run' end
  local owner, started, ended = unended(queue, scheduler)
  -- one that has ended since, and was retried, is a run as any other
  local was_begun = Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id)).di == dedup_id(scheduler)
  if was_begun and (not owner or owner == job.id) then return 'run', nil, true end
  local has_met = started ~= nil and slot >= started and (owner ~= nil or slot < ended)
  if overlap == SKIP and has_met then return 'skip' end
  if owner then return 'hold', owner end
  return 'run', nil, has_met
end

-- A run has ended for good, and leaves these state fields.
local function note_end(queue, id, fields, now_ms)
  local scheduler = PendingIteration.scheduler_of(id)
  if not scheduler or fields.di ~= dedup_id(scheduler) then return end
  local raw = redis.call('HGET', queue.base .. 'scheduler-runs', scheduler)
  if raw and #raw == 16 then note_run(queue, scheduler, struct.unpack('<d', raw), now_ms) end
  local held = fields.hd or {}
  fields.hd = nil
  for _, other in ipairs(held) do
    if redis.call('ZREM', queue.base .. 'delayed', other) == 1 then
      WaitingList.append(queue.finishing.waiting, other)
      Events.emit_job(queue, 'waiting', other, 'delayed')
    end
  end
end

return {
  begin = begin,
  drop = drop,
  hold = hold,
  judge = judge,
  note_end = note_end,
}
