-- upsert_scheduler: makes a scheduler, or changes it, and makes its next iteration; once however often it is sent.
-- KEYS    base (also: state meta log front jobs vitals traces active logged takes frames runs holes gone prioritized delayed delays
--         completed failed waiting-children schedulers scheduler events trims wake logs:<id> de:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, call_slot, number, id, schedule (MessagePack: every_ms, next_ms, offset_ms, start_ms, limit of neither is
--         0 = none; offset_ms -1 = none), record (MessagePack: name, data, template, repeat), job (MessagePack: options, id_text,
--         priority, lifo 1|0; lib/schedulers)
-- RETURNS {slot, delay_ms} of the iteration | -10 | -11
-- ERRORS  -10 there is a job of the iteration's id, -11 in 33 slots there is      EVENTS added, waiting, delayed
-- COST    O(log n), O(front list) when it replaces a waiting iteration
-- SOURCE  BullMQ 6.7 Queue#upsertJobScheduler
local Events = require('events')
local Find = require('find')
local Locate = require('locate')
local Memo = require('memo')
local Records = require('records')
local Schedulers = require('schedulers')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, call_slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local schedule, record, job = cmsgpack.unpack(args[6]), cmsgpack.unpack(args[7]), cmsgpack.unpack(args[8])
  local ERROR_ID_TAKEN, ERROR_SLOTS_TAKEN, MOST_SLOTS = -10, -11, 33

  local queue, known = Memo.open(base, client, call_slot, number)
  if known then return known end

  local every_ms, next_ms, offset_ms, start_ms = unpack(schedule)
  local count, before = 1, nil
  local raw = redis.call('HGET', base .. 'scheduler', id)
  if raw then count, before = Schedulers.read_scheduler(raw) end
  count = count or 1
  local latest = tonumber(redis.call('ZSCORE', base .. 'schedulers', id))

  -- The latest iteration, if a new one may take its place. One in line stays while the queue is paused, as in BullMQ.
  local function replaceable()
    local found = latest and Find.locate(queue, Schedulers.iteration_id(id, latest))
    if not found then return nil end
    if found.state == 'waiting' and redis.call('HEXISTS', base .. 'meta', 'paused') == 1 then return nil end
    return (found.state == 'waiting' or found.state == 'delayed' or found.state == 'prioritized') and found or nil
  end

  local replaced = replaceable()

  -- The job that has the id of a pattern's next iteration, if it has ended and a later one is pending: it was promoted, and ran before its time.
  local function ran_early()
    local found = replaced and every_ms == 0 and next_ms ~= latest and Find.locate(queue, Schedulers.iteration_id(id, next_ms))
    return found and (found.state == 'completed' or found.state == 'failed') and found or nil
  end

  local early = ran_early()

  local function first_slot()
    if start_ms > 0 then return math.max(start_ms, now_ms) end
    return offset_ms > 0 and Schedulers.slot_after(now_ms, every_ms, offset_ms) or now_ms
  end

  local function is_taken(slot)
    if (replaced and slot == latest) or (early and slot == next_ms) then return false end
    return redis.call('HEXISTS', base .. 'jobs', Schedulers.iteration_id(id, slot)) == 1
  end

  local function free_slot()
    local slot
    if every_ms == 0 then
      return not is_taken(next_ms) and next_ms or ERROR_ID_TAKEN
    elseif not (latest and before and before[5] == every_ms) then
      slot = first_slot()
    else
      slot = replaced and latest or Schedulers.next_slot(latest, every_ms, math.max(offset_ms, 0), now_ms)
    end
    for _ = 1, MOST_SLOTS do
      if not is_taken(slot) then return slot end
      slot = slot + every_ms
    end
    return ERROR_SLOTS_TAKEN
  end

  local function take_out(found)
    if found.state == 'waiting' then
      Locate.leave_line(queue, found)
    else
      redis.call('ZREM', base .. found.state, found.id)
      if found.state == 'completed' then queue.completed = queue.completed - 1 end
    end
    Records.drop_records(queue, { found.id })
  end

  local slot = free_slot()
  if slot < 0 then return slot end
  if replaced then take_out(replaced) end
  if early then take_out(early) end
  -- What is not said again goes by the iteration whose place is taken.
  if offset_ms < 0 then offset_ms = replaced and before and before[6] or (every_ms > 0 and slot % every_ms or 0) end
  record[5], record[6] = every_ms, offset_ms
  redis.call('HSET', base .. 'scheduler', id, struct.pack('<d', count) .. cmsgpack.pack(record))
  redis.call('ZADD', base .. 'schedulers', slot, id)
  Schedulers.add_iterations(queue, { { id = Schedulers.iteration_id(id, slot), slot = slot, name = record[1], data = record[2], every_ms = every_ms, options = job[1],
    id_text = job[2], priority = job[3], lifo = job[4] == 1 } }, now_ms)
  Events.flush_events(queue, now_ms)
  local reply = { slot, math.max(slot - now_ms, 0) }
  Memo.remember(base, client, call_slot, number, reply)
  return reply
end
