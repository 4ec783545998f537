-- due: delayed -> waiting | prioritized, for jobs that are due, by the step of any worker. On the way to a fetch those that head the waiting list
-- do not enter it.
local AclCheck = require('acl_check')
local Delayed = require('delayed')
local Events = require('events')
local Prioritized = require('prioritized')
local State = require('state')

-- Of a queue: promoted, due jobs that head the waiting list without having entered it, if there are any: ids; at: of them, those that were taken; more:
-- others are due. later_ms: when the next delayed job is due, if none was; none_delayed: there is none (step/round_trip knows of some at once).
-- So many due jobs are looked for at first; more than that do not leave at once.
local FIRST_DUE, PROMOTE_LIMIT = 16, 1000

local function last_due(now_ms) return State.whole(now_ms * 4096 + 4095) end

local function due_jobs(queue, now_ms, from, count)
  return redis.call('ZRANGEBYSCORE', queue.base .. 'delayed', '-inf', last_due(now_ms), 'LIMIT', from, count)
end

-- Due jobs for a fetch of up to `room`, and whether there are very many: then these are no more than it takes.
local function due_for(queue, room, now_ms)
  local most = math.min(math.max(room, FIRST_DUE), PROMOTE_LIMIT)
  local ids = due_jobs(queue, now_ms, 0, most)
  if #ids < most or most == PROMOTE_LIMIT then return ids, false end
  if redis.call('ZCOUNT', queue.base .. 'delayed', '-inf', last_due(now_ms)) >= PROMOTE_LIMIT then
    for i = #ids, room + 1, -1 do ids[i] = nil end
    return ids, true
  end
  for _, id in ipairs(due_jobs(queue, now_ms, most, PROMOTE_LIMIT - most)) do ids[#ids + 1] = id end
  return ids, false
end

local function leave_delayed(queue, ids)
  if #ids == 0 then return end
  AclCheck.require_commands(queue, { 'XADD', 'ZADD' })
  redis.call('ZREMRANGEBYRANK', queue.base .. 'delayed', 0, #ids - 1)
  Events.emit(queue, #ids, { 'X', 'waiting', ids, 'prev', 'delayed' })
end

-- delayed -> waiting | prioritized, for every job that is due.
local function promote(queue, now_ms)
  local ids = due_jobs(queue, now_ms, 0, PROMOTE_LIMIT)
  leave_delayed(queue, ids)
  Prioritized.enter(queue, ids)
end

-- The same on the way to a fetch of up to `room` jobs. Due jobs that head the waiting list do not enter it; of very many, no more than these
-- leave the delayed ones.
local function promote_for(queue, room, now_ms)
  local due_ms = Delayed.next_due(queue)
  queue.later_ms = due_ms and due_ms > now_ms and due_ms
  queue.none_delayed = not due_ms
  if not due_ms or queue.later_ms then return end
  if queue.waiting > 0 or queue.place > 0 or room == 0 then
    promote(queue, now_ms)
    return
  end
  local ids, more = due_for(queue, room, now_ms)
  AclCheck.require_commands(queue, { 'HMGET', 'HSET', 'LPOP', 'SET' })
  leave_delayed(queue, ids)
  queue.promoted = { ids = ids, at = 0, more = more }
end

-- When the next delayed job is due, after that; nil when there is none.
local function next_ms(queue)
  if queue.later_ms or queue.none_delayed then return queue.later_ms or nil end
  return Delayed.next_due(queue)
end

-- Due jobs that were not taken wait.
local function enter(queue)
  local promoted = queue.promoted
  if promoted and promoted.at < #promoted.ids then Prioritized.enter(queue, { unpack(promoted.ids, promoted.at + 1) }) end
end

return {
  promote = promote,
  promote_for = promote_for,
  next_ms = next_ms,
  enter = enter,
}
