-- start_on_add: a plain job that starts as it is added: it is alone in the waiting list, and a worker waits for it (add_and_step). What is
-- written is what add_frames and step write one behind the other, by half as many commands; the events are one entry.
-- worker is whom add_and_step is called for: asked, owner, wait; once a job has started: reply, that of step.
local Holder = require('holder')
local IdleWait = require('idle_wait')
local Lease = require('lease')
local Memo = require('memo')
local State = require('state')

-- Nothing waits, and nothing limits who may start what comes.
local function is_free(queue)
  return queue.raw and queue.waiting == 0 and queue.unlimited == 1 and queue.place == 0 and queue.flows == 0 and queue.holes == 0
    and queue.stale == 0 and queue.references == 0 and queue.apart == 0
end

-- Makes the job that is about to be added active. Gives how it started, or nil: then nothing has changed.
local function begin(queue, worker)
  if not is_free(queue) then return nil end
  local base, first = queue.base, queue.id + 1
  local _, now_ms, owner, slot, number, lease_ms, worker_name, want, _, _, offset_us, limiter_max = cmsgpack.unpack(worker.asked)
  if want < 1 or limiter_max > 0 then return nil end
  local memo, lease = Memo.key_of(base, owner, slot), Lease.key_of(base, owner)
  local read = redis.call('MGET', memo, lease, base .. 'delays')
  if Memo.is_known(read[1], number) or read[3] then return nil end

  local time = redis.call('TIME')
  local server_us = time[1] * 1000000 + time[2]
  local step = { owner = owner, worker_name = worker_name, claim = 2 * number,
    now_ms = math.max(now_ms, math.floor((server_us + offset_us) / 1000)) }
  if worker.wait > 0 and not IdleWait.end_step(base, owner, worker.wait) then return nil end
  redis.call('HSET', base .. 'takes', State.whole(first), Holder.entry(step, Holder.FRAME))
  Lease.renew(lease, read[2], lease_ms, time[1])
  queue.active, queue.cursor_ms, queue.cursor_seq = queue.active + 1, first, 1
  return { memo = memo, number = number, step = step, first = first, server_us = server_us }
end

-- The event of its start.
local function event(started)
  return '\147\161a' .. cmsgpack.pack(started.first) .. '\1'
end

-- It is added: remembers the step, and gives its reply.
local function reply(started, blob)
  local step, first = started.step, started.first
  Memo.remember_packed(started.memo, struct.pack('<ddddd', started.number, -1, 0, step.now_ms, 0) .. '\144\146' .. cmsgpack.pack(first) .. '\1')
  return { {}, { first, 1, blob }, -1, 0, 0, step.now_ms, started.server_us, 0, step.claim }
end

return {
  begin = begin,
  event = event,
  reply = reply,
}
