-- next_iterations: makes what follows iterations that were taken, each one once: a taken one that is its scheduler's latest no more
-- has been followed.
-- KEYS    base (also: state log front jobs prioritized delayed delays schedulers scheduler events trims wake)
-- ARGV    now_ms (epoch ms), taken (MessagePack, one a taken iteration: {scheduler, slot, next_ms (0 = by the scheduler's own every_ms),
--         options, id_text, priority, lifo 1|0, group or nil}; rules/schedulers)
-- RETURNS {slot, ...} of what follows each; 0 = nothing, or it is there
-- ERRORS  none      EVENTS added, waiting, delayed, duplicated      COST O(taken * log n)
-- SOURCE  BullMQ 6.7 Worker (differs: a batch)
-- FLAGS   allow-oom
local Events = require('events')
local Schedulers = require('schedulers')
local State = require('state')
local WaitingList = require('waiting_list')

local STEP = 500

-- Of a queue: following, what the call has found: now_ms; slots, one a taken iteration; added: iterations; moved, by scheduler; schedulers and counted: what
-- is written.

-- The iteration that follows a taken one of this scheduler, or nil.
local function next_of(item, raw, now_ms)
  local count, fields = Schedulers.read_scheduler(raw)
  if not count then return nil end
  local every_ms, next_ms = fields[5], item[3]
  if next_ms == 0 and every_ms == 0 then return nil end
  local slot = next_ms > 0 and next_ms or Schedulers.next_slot(item[2], every_ms, fields[6], now_ms)
  return { id = Schedulers.iteration_id(item[1], slot), scheduler = item[1], slot = slot, name = fields[1], data = fields[2], every_ms = every_ms,
    options = item[4], id_text = item[5], priority = item[6], lifo = item[7] == 1, group = item[8], count = count, raw = raw }
end

local function advance(following, it)
  following.moved[it.scheduler] = true
  WaitingList.append(following.added, it)
  WaitingList.append(following.schedulers, it.scheduler, struct.pack('<d', it.count + 1) .. it.raw:sub(Schedulers.COUNT_BYTES + 1))
  WaitingList.append(following.counted, it.slot, it.scheduler)
end

-- The iterations that follow some taken ones, each with its place among the slots.
local function find_next(queue, items)
  local following, ids, found = queue.following, {}, {}
  for i, item in ipairs(items) do ids[i] = item[1] end
  local latest, raws = redis.call('ZMSCORE', queue.base .. 'schedulers', unpack(ids)), redis.call('HMGET', queue.base .. 'scheduler', unpack(ids))
  for i, item in ipairs(items) do
    -- what is stored of one that has no latest iteration any more tells that it goes on
    local it = raws[i] and (not latest[i] or tonumber(latest[i]) == item[2]) and next_of(item, raws[i], following.now_ms)
    WaitingList.append(following.slots, 0)
    if it then
      it.at = #following.slots
      found[#found + 1] = it
    end
  end
  return found
end

local function follow(queue, items)
  local following, found, names = queue.following, find_next(queue, items), {}
  if #found == 0 then return end
  for i, it in ipairs(found) do names[i] = it.id end
  for i, body in ipairs(redis.call('HMGET', queue.base .. 'jobs', unpack(names))) do
    local it = found[i]
    if body then
      Events.emit_job(queue, 'duplicated', it.id)
    elseif not following.moved[it.scheduler] then
      following.slots[it.at] = it.slot
      advance(following, it)
    end
  end
end

return function(keys, args)
  local base = keys[1]
  local now_ms, taken = tonumber(args[1]), cmsgpack.unpack(args[2])

  local queue = State.open(base)

  local following = { now_ms = now_ms, slots = {}, added = {}, moved = {}, schedulers = {}, counted = {} }
  queue.following = following
  for from = 1, #taken, STEP do follow(queue, { unpack(taken, from, math.min(from + STEP - 1, #taken)) }) end
  if #following.added > 0 then
    WaitingList.call_in_chunks('HSET', base .. 'scheduler', following.schedulers)
    WaitingList.call_in_chunks('ZADD', base .. 'schedulers', following.counted)
    Schedulers.add_iterations(queue, following.added, now_ms)
  end
  Events.flush_events(queue, now_ms)
  return following.slots
end
