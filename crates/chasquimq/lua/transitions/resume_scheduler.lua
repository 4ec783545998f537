-- resume_scheduler: a scheduler that is paused goes on, with the iteration that was held: at its slot, or, where that is past, at the next one.
-- KEYS    base (also: state meta log front jobs vitals prioritized grouped groups group:<group> delayed delays schedulers scheduler events trims wake
--         memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, call_slot, number, id, held (as the caller has read it), next_ms (0 = by the scheduler's own every_ms; -1 = there is
--         none), jitter_ms, job (MessagePack: options, id_text, priority, lifo 1|0, group or nil, terms or nil; rules/schedulers)
-- RETURNS 1 it goes on | 0 there is none | -1 what was held is not that any more | -10 | -11
-- ERRORS  -10 there is a job of the iteration's id, -11 in 33 slots there is      EVENTS added, waiting, delayed      COST O(log n)
-- SOURCE  not in BullMQ
local Events = require('events')
local Memo = require('memo')
local Schedulers = require('schedulers')

local CHANGED, ERROR_ID_TAKEN, ERROR_SLOTS_TAKEN, MOST_SLOTS = -1, -10, -11, 33

local function is_taken(queue, id, slot)
  return redis.call('HEXISTS', queue.base .. 'jobs', Schedulers.iteration_id(id, slot)) == 1
end

-- A slot of its own that no job has.
local function own_slot(queue, id, fields, latest, now_ms)
  local every_ms = fields[5]
  local slot = latest > now_ms and latest or Schedulers.slot_after(now_ms, every_ms, fields[6])
  for _ = 1, MOST_SLOTS do
    if not is_taken(queue, id, slot) then return slot end
    slot = slot + every_ms
  end
  return ERROR_SLOTS_TAKEN
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, call_slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local held, next_ms, jitter_ms, job = args[6], tonumber(args[7]), tonumber(args[8]), cmsgpack.unpack(args[9])

  local queue, known = Memo.open(base, client, call_slot, number)
  if known then return known end

  local latest, raw = redis.call('ZSCORE', base .. 'schedulers', id), redis.call('HGET', base .. 'scheduler', id)
  local count, fields = nil, nil
  if latest and raw then count, fields = Schedulers.read_scheduler(raw) end
  if not count then return 0 end
  if fields[Schedulers.HELD] then
    if fields[Schedulers.HELD] ~= held then return CHANGED end
    local slot = nil
    if held ~= '' and next_ms >= 0 then
      slot = next_ms > 0 and next_ms or own_slot(queue, id, fields, tonumber(latest), now_ms)
      if slot < 0 then return slot end
      if next_ms > 0 and is_taken(queue, id, slot) then return ERROR_ID_TAKEN end
    end
    fields[Schedulers.HELD], fields[Schedulers.CLOCK] = nil, fields[Schedulers.CLOCK] or nil
    redis.call('HSET', base .. 'scheduler', id, Schedulers.pack_scheduler(count, fields))
    if slot then
      redis.call('ZADD', base .. 'schedulers', slot, id)
      Schedulers.add_iterations(queue, { { id = Schedulers.iteration_id(id, slot), slot = slot, name = fields[1], data = fields[2], every_ms = fields[5],
        jitter_ms = jitter_ms, options = job[1], id_text = job[2], priority = job[3], lifo = job[4] == 1, group = job[5], terms = job[6] } }, now_ms)
      Events.flush_events(queue, now_ms)
    end
  end
  Memo.remember(base, client, call_slot, number, 1)
  return 1
end
