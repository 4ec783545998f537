-- start_on_add: a plain job that starts as it is added: it is alone in the waiting list, and a worker waits for it (add_and_step). What is
-- written is what add_frames and step write one behind the other, by half as many commands; the events are one entry.
-- worker is whom add_and_step is called for: asked; of `look`, what the step asks for, under the names of step/round_trip; once a job has
-- started: reply, that of step.
local Delayed = require('delayed')
local Holder = require('holder')
local Lease = require('lease')
local Memo = require('memo')
local StepMemo = require('step_memo')
local WaitingWorkers = require('waiting_workers')

-- Notes what the worker asks for. Gives the keys to be read; none where its step is none that starts as a job is added.
local function look(base, worker)
  local _, now_ms, owner, number, lease_ms, worker_name, want, _, _, _, offset_us, limits, leaves_due, asks_due, slots, waits
    = cmsgpack.unpack(worker.asked)
  if want < 1 or limits ~= 0 then return end
  worker.now_ms, worker.number, worker.lease_ms, worker.worker_name, worker.offset_us = now_ms, number, lease_ms, worker_name, offset_us
  worker.owner, worker.slots, worker.waits = owner, slots, waits == WaitingWorkers.WAITS
  worker.memo, worker.lease, worker.claim = StepMemo.key_of(base, owner), Lease.key_of(base, owner), 2 * number
  worker.left = worker.waits and want > 1 and 2 or 0
  worker.tells_due, worker.leaves_due = want > 1 or asks_due == 1, leaves_due == 1
  return worker.memo, worker.lease, base .. 'delays'
end

-- Makes the job of this number active, before it is added. remembered, left, delays: what the keys hold. False where the step was carried out before, or
-- takes more; then nothing has changed.
local function start(base, first, worker, remembered, left, delays)
  if Memo.is_known(remembered, worker.number) then return false end
  local time = redis.call('TIME')
  local seconds = time[1]
  local server_us = seconds * 1000000 + time[2]
  worker.now_ms = math.max(worker.now_ms, math.floor((server_us + worker.offset_us) / 1000))
  local due_ms = delays and (worker.tells_due or not worker.leaves_due) and Delayed.next_due({ base = base })
  if due_ms and due_ms <= worker.now_ms and not worker.leaves_due then return false end
  worker.due_ms = worker.tells_due and due_ms or -1
  if worker.waits and worker.left == 0 then WaitingWorkers.remove(base, worker.owner) end
  redis.call('HSET', base .. 'takes', first, Holder.entry(worker, Holder.FRAME))
  Lease.renew(worker.lease, left, worker.lease_ms, seconds)
  worker.server_us = server_us
  return true
end

-- It is added: remembers the step, and gives its reply. packed: first, as MessagePack.
local function remember(worker, first, packed, blob)
  local number, now_ms = worker.number, worker.now_ms
  Memo.remember_packed(worker.memo, StepMemo.head(number, worker.due_ms, 0, now_ms, 0, worker.slots) .. '\144\146' .. packed .. '\1')
  worker.reply = { {}, { first, 1, blob }, worker.due_ms, 0, worker.left, now_ms, worker.server_us, 0, worker.claim }
end

return {
  look = look,
  start = start,
  remember = remember,
}
