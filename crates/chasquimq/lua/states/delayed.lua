-- delayed: a sorted set by due time; the low twelve bits of a score keep arrival order within a millisecond. Those that are due
-- become waiting in states/due.
--   delays  string of three doubles: seq, floor, latest. Jobs of one call get the order number seq, and those of one due time count up
--           from it; the next call starts above. Before seq runs out of bits it starts again: then what is due up to floor, the latest due time so
--           far, may lie beside higher numbers, and a look at the set gives the number instead.
-- Why delays: a call with a thousand due times reads and writes one text, and does not look at the set a thousand times.
local Groups = require('groups')
local State = require('state')
local WaitingList = require('waiting_list')

local MAX_SEQ, RESTART_SEQ = 4095, 3000

local function due_of(score)
  return score and math.floor(tonumber(score) / 4096)
end

-- Due time of the earliest delayed job, or nil.
local function next_due(queue)
  return due_of(redis.call('ZRANGE', queue.base .. 'delayed', 0, 0, 'WITHSCORES')[2])
end

-- Wakes a worker where a job could start, or is delayed, or of a limited group: somebody is to know when it is due.
local function wake_for_jobs(queue)
  if WaitingList.has_work(queue) or next_due(queue) or Groups.next_opening(queue) then WaitingList.wake(queue) end
end

-- The earliest one and its due time, and that of the next one; nil: there is none.
local function next_two(base)
  local head = redis.call('ZRANGE', base .. 'delayed', 0, 1, 'WITHSCORES')
  return head[1], due_of(head[2]), due_of(head[4])
end

-- What `delays` said is lost: the next jobs find their places by a look at the set. last_score: the latest one's.
local function begin_anew(queue, last_score)
  redis.call('SET', queue.base .. 'delays', struct.pack('<ddd', 0, due_of(last_score), due_of(last_score)))
end

local function seq_behind(queue, due_ms)
  local low = due_ms * 4096
  local last = redis.call('ZREVRANGEBYSCORE', queue.base .. 'delayed', State.whole(low + MAX_SEQ), State.whole(low), 'WITHSCORES', 'LIMIT', 0, 1)
  return last[2] and tonumber(last[2]) - low + 1 or 0
end

-- Delays jobs until their due times (epoch ms), in order. Gives whether one of them is due before every other delayed job.
local function delay_jobs(queue, ids, dues)
  local seq, floor, latest = 0, 0, 0
  local raw = redis.call('GET', queue.base .. 'delays')
  if raw and #raw == 24 then seq, floor, latest = struct.unpack('<ddd', raw) end
  local before = next_due(queue)
  if not before then
    seq, floor, latest = 0, 0, 0
  elseif seq > RESTART_SEQ then
    seq, floor = 0, latest
  end
  local next_seq, args, top, earliest = {}, {}, seq, math.huge
  for i = 1, #dues do
    local due_ms = dues[i]
    local own = next_seq[due_ms] or (due_ms > floor and seq or seq_behind(queue, due_ms))
    next_seq[due_ms] = own + 1
    if own >= top and due_ms > floor then top = own + 1 end
    if due_ms > latest then latest = due_ms end
    if due_ms < earliest then earliest = due_ms end
    args[2 * i - 1], args[2 * i] = due_ms * 4096 + (own < MAX_SEQ and own or MAX_SEQ), ids[i]
  end
  -- in this order: without it nobody looks for delayed jobs
  redis.call('SET', queue.base .. 'delays', struct.pack('<ddd', top, floor, latest))
  WaitingList.call_in_chunks('ZADD', queue.base .. 'delayed', args)
  queue.none_delayed = false
  return not before or earliest < before
end

return {
  next_due = next_due,
  next_two = next_two,
  wake_for_jobs = wake_for_jobs,
  begin_anew = begin_anew,
  delay_jobs = delay_jobs,
}
