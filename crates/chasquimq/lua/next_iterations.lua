-- next_iterations: makes what follows iterations that were taken, each one once: a taken one that is its scheduler's latest no more
-- has been followed.
-- KEYS    base (also: state log front jobs prioritized delayed delays schedulers scheduler events trims wake)
-- ARGV    now_ms (epoch ms), taken (MessagePack, one a taken iteration: {scheduler, slot, next_ms (0 = by the scheduler's own every_ms),
--         options, id_text, priority, lifo 1|0}; lib/schedulers)
-- RETURNS {slot, ...} of what follows each; 0 = nothing, or it is there
-- ERRORS  none      EVENTS added, waiting, delayed, duplicated      COST O(taken * log n)
-- SOURCE  BullMQ 6.7 Worker (differs: a batch)
local base = KEYS[1]
local now_ms, taken = tonumber(ARGV[1]), cmsgpack.unpack(ARGV[2])

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/schedulers

local STEP = 500
local slots, added, counted, moved = {}, {}, {}, {}

-- The iteration that follows a taken one of this scheduler, or nil.
local function following(item, raw)
  local count, fields = read_scheduler(raw)
  local every_ms, next_ms = fields[5], item[3]
  if next_ms == 0 and every_ms == 0 then return nil end
  local slot = next_ms > 0 and next_ms or next_slot(item[2], every_ms, fields[6], now_ms)
  return { scheduler = item[1], slot = slot, name = fields[1], data = fields[2], every_ms = every_ms, options = item[4],
    id_text = item[5], priority = item[6], lifo = item[7] == 1, raw = struct.pack('<d', count + 1) .. raw:sub(COUNT_BYTES + 1) }
end

local function follow(items)
  local ids, names, found = {}, {}, {}
  for i, item in ipairs(items) do ids[i] = item[1] end
  local latest, raws = redis.call('ZMSCORE', base .. 'schedulers', unpack(ids)), redis.call('HMGET', base .. 'scheduler', unpack(ids))
  for i, item in ipairs(items) do
    local it = raws[i] and tonumber(latest[i]) == item[2] and following(item, raws[i])
    if it then append(found, it) end
    slots[#slots + 1] = it and it.slot or 0
    if it then
      it.at = #slots
      append(names, iteration_id(it.scheduler, it.slot))
    end
  end
  if #found == 0 then return end
  local bodies = redis.call('HMGET', base .. 'jobs', unpack(names))
  for i, it in ipairs(found) do
    if bodies[i] or moved[it.scheduler] then
      if bodies[i] then emit_job('duplicated', names[i]) end
      slots[it.at] = 0
    else
      moved[it.scheduler] = true
      append(added, it)
      append(counted, it.slot, it.scheduler)
    end
  end
end

for from = 1, #taken, STEP do follow({ unpack(taken, from, math.min(from + STEP - 1, #taken)) }) end
if #added > 0 then
  local fields = {}
  for _, it in ipairs(added) do append(fields, it.scheduler, it.raw) end
  call_in_chunks('HSET', base .. 'scheduler', fields)
  call_in_chunks('ZADD', base .. 'schedulers', counted)
  add_iterations(added, now_ms)
end
flush_events(now_ms)
return slots
