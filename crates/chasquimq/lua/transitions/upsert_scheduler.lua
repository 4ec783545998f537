-- upsert_scheduler: makes a scheduler, or changes it, and makes its next iteration; once however often it is sent. One that is paused stays so: what its
-- next iteration would be is noted. The server is asked for its time, as in next_iterations.
-- KEYS    base (also: state meta log front jobs vitals traces active logged takes frames apart:<first> runs holes gone prioritized delayed delays
--         completed failed waiting-children schedulers scheduler events trims wake logs:<id> de:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, call_slot, number, id, schedule (MessagePack: every_ms, next_ms, offset_ms, start_ms, jitter_ms, after_ms, keeps 1|0;
--         0 = none; offset_ms -1 = none; after_ms: next_ms is the time behind this one; keeps: what was said before goes on), record (MessagePack: name, data, template, repeat), job (MessagePack: options, id_text,
--         priority, lifo 1|0, group or nil, terms or nil; rules/schedulers)
-- RETURNS {slot, delay_ms} of the iteration | 0 it is paused | -1 what follows the latest iteration is asked for, as that has just been taken
--         | -10 | -11
-- ERRORS  -10 there is a job of the iteration's id, -11 in 33 slots there is      EVENTS added, waiting, delayed
-- COST    O(log n), O(front list) when it replaces a waiting iteration
-- SOURCE  BullMQ 6.7 Queue#upsertJobScheduler
local Events = require('events')
local Find = require('find')
local Memo = require('memo')
local Schedulers = require('schedulers')

local ASK_BEHIND = -1
local ERROR_ID_TAKEN, ERROR_SLOTS_TAKEN, MOST_SLOTS = -10, -11, 33
-- A worker that lives makes what follows an iteration sooner, on the busiest machine.
local TAKING_MS = 30000

-- What is asked for: id, every_ms, next_ms, offset_ms, start_ms, after_ms, now_ms; and of what is there: latest, the slot of the latest iteration, before,
-- the scheduler's record, is_same, whether that says the same of its times, found, the job of the latest iteration, replaced and early, jobs that make
-- place (below).

-- What is in the place of the latest iteration while a scheduler is paused: nothing is to be taken out.
local HELD = { state = 'held' }

-- The latest iteration, if a new one may take its place. One that waits stays while the queue is paused, as in BullMQ.
local function replaceable(queue, asked)
  if asked.before and (asked.before[Schedulers.HELD] or '') ~= '' then return HELD end
  local found = asked.found
  if not found then return nil end
  if found.state == 'waiting' and redis.call('HEXISTS', queue.base .. 'meta', 'paused') == 1 then return nil end
  return Schedulers.is_pending(found) and found or nil
end

-- The job that has the id of a pattern's next iteration, if it has ended and a later one is pending: it was promoted, and ran before its time.
local function ran_early(queue, asked)
  local found = asked.replaced and asked.every_ms == 0 and asked.next_ms ~= asked.latest
    and Find.locate(queue, Schedulers.iteration_id(asked.id, asked.next_ms))
  return found and (found.state == 'completed' or found.state == 'failed') and found or nil
end

local function first_slot(asked)
  if asked.start_ms > 0 then return math.max(asked.start_ms, asked.now_ms) end
  return asked.offset_ms > 0 and Schedulers.slot_after(asked.now_ms, asked.every_ms, asked.offset_ms) or asked.now_ms
end

local function is_taken(queue, asked, slot)
  if (asked.replaced and slot == asked.latest) or (asked.early and slot == asked.next_ms) then return false end
  return redis.call('HEXISTS', queue.base .. 'jobs', Schedulers.iteration_id(asked.id, slot)) == 1
end

-- Whether a worker has just taken the latest iteration of a scheduler that is upserted as it was, however late that is: it is about to make the next one, by
-- a clock that may be another.
local function was_just_taken(asked, next_ms)
  local found = asked.is_same and asked.found
  return found and found.state == 'active' and next_ms < asked.now_ms and asked.now_ms - found.active[1] <= TAKING_MS
end

-- The slot at a time that the caller has computed by its own clock. Upserted as it was, a scheduler runs no slot twice, and passes over none.
local function slot_of_caller(queue, asked)
  local latest, next_ms = asked.latest, asked.next_ms
  if asked.is_same then
    local is_soon = next_ms - asked.now_ms <= Schedulers.CLOCKS_MS
    if asked.replaced and (latest <= asked.now_ms or is_soon) then return latest end
    if not asked.replaced and next_ms <= latest and is_soon then return ERROR_ID_TAKEN end
    if asked.after_ms ~= latest and was_just_taken(asked, latest) then return ASK_BEHIND end
  end
  return not is_taken(queue, asked, next_ms) and next_ms or ERROR_ID_TAKEN
end

local function free_slot(queue, asked)
  local every_ms, latest, before = asked.every_ms, asked.latest, asked.before
  local slot
  if every_ms == 0 then
    return slot_of_caller(queue, asked)
  elseif was_just_taken(asked, latest and latest + every_ms) then
    slot = latest + every_ms
  elseif not (latest and before and before[5] == every_ms) then
    slot = first_slot(asked)
  else
    slot = asked.replaced and latest or Schedulers.next_slot(latest, every_ms, math.max(asked.offset_ms, 0), asked.now_ms)
  end
  for _ = 1, MOST_SLOTS do
    if not is_taken(queue, asked, slot) then return slot end
    slot = slot + every_ms
  end
  return ERROR_SLOTS_TAKEN
end

-- The phase of the slots. What is not said again goes by the iteration whose place is taken.
local function offset_of(asked, slot)
  if asked.offset_ms >= 0 then return asked.offset_ms end
  return asked.replaced and asked.before and asked.before[6] or (asked.every_ms > 0 and slot % asked.every_ms or 0)
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, call_slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local schedule, record, job = cmsgpack.unpack(args[6]), cmsgpack.unpack(args[7]), cmsgpack.unpack(args[8])

  local queue, known = Memo.open(base, client, call_slot, number)
  if known then return known end

  local asked = { id = id, now_ms = now_ms, every_ms = schedule[1], next_ms = schedule[2], offset_ms = schedule[3], start_ms = schedule[4],
    after_ms = schedule[6], latest = tonumber(redis.call('ZSCORE', base .. 'schedulers', id)) }
  local raw, count = redis.call('HGET', base .. 'scheduler', id), nil
  if raw then count, asked.before = Schedulers.read_scheduler(raw) end
  asked.is_same = asked.latest and asked.before and asked.before[5] == asked.every_ms and asked.before[4] == record[4] and schedule[7] == 1
  asked.found = asked.latest and Find.locate(queue, Schedulers.iteration_id(id, asked.latest))
  asked.replaced = replaceable(queue, asked)
  asked.early = ran_early(queue, asked)
  local slot = free_slot(queue, asked)
  if slot < 0 then return slot end
  if asked.replaced and asked.replaced ~= HELD then Schedulers.take_out(queue, asked.replaced) end
  if asked.early then Schedulers.take_out(queue, asked.early) end
  record[5], record[6] = asked.every_ms, offset_of(asked, slot)
  local it = { id = Schedulers.iteration_id(id, slot), slot = slot, name = record[1], data = record[2], every_ms = asked.every_ms, jitter_ms = schedule[5],
    options = job[1], id_text = job[2], priority = job[3], lifo = job[4] == 1, group = job[5], terms = job[6] }
  local is_paused = asked.before and asked.before[Schedulers.HELD]
  record[Schedulers.CLOCK] = Schedulers.clock_of(asked.before, now_ms)
  if is_paused then record[Schedulers.HELD] = Schedulers.iteration_options(it, now_ms) end
  redis.call('HSET', base .. 'scheduler', id, Schedulers.pack_scheduler(count or 1, record))
  redis.call('ZADD', base .. 'schedulers', slot, id)
  if not is_paused then Schedulers.add_iterations(queue, { it }, now_ms) end
  Events.flush_events(queue, now_ms)
  local reply = is_paused and 0 or { slot, math.max(Schedulers.due_of(it) - now_ms, 0) }
  Memo.remember(base, client, call_slot, number, reply)
  return reply
end
