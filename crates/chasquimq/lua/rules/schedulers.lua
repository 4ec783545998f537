-- schedulers: what makes jobs again and again. A scheduler's latest iteration is an ordinary record, with the id repeat:<scheduler>:<slot>;
-- the slot is the time (epoch ms) for which it was made. It belongs to its scheduler until a worker has taken it and the next one is there.
--   schedulers  sorted set of ids by the slot of the latest iteration
--   scheduler   id -> count of iterations (a double), then a MessagePack array: name, data (JSON text), template (JSON text of its
--               options), repeat (JSON text: when it runs, as the user said), every_ms (0 = at times the caller computes), offset_ms of
--               its slots from multiples of every_ms; clock_ms, by how much the clock of who upserted it, or took an iteration, is before the server's: the slowest
--               of late (false or left out = it is not known); of one that is paused also held, the JSON text of the options of the iteration that is to come
--               ('' = none is). Its slot is that of the latest iteration then, and no job has it
-- An iteration to write is {id, slot, name, data, every_ms, jitter_ms, priority, lifo, group, options, id_text, terms}. group and terms: as add names them, or nil. options: the JSON text of its options, but for
-- those that depend on the slot, and its closing brace; id_text: the JSON text of its id up to the slot. Its job is due by up to jitter_ms later.
-- A job that somebody asked for meanwhile is none of the latest: its id is repeat:<scheduler>:0<ms>, with more noughts for more of them in a millisecond.
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local GroupSize = require('group_size')
local Groups = require('groups')
local Locate = require('locate')
local Prioritized = require('prioritized')
local Records = require('records')
local State = require('state')
local Stored = require('stored')
local Terms = require('terms')
local WaitingList = require('waiting_list')

local COUNT_BYTES, CLOCK, HELD = 8, 7, 8
-- Clocks of one deployment are not further apart than this, unless somebody fakes one.
local CLOCKS_MS, FAKE_MS = 5000, 60000
-- So much a run the slowest clock is forgotten: what differs by less is the same.
local FORGET_MS = 50
-- Hexadecimal digits of a hash that a double holds.
local DIGITS = 13

local function iteration_id(scheduler, slot)
  return 'repeat:' .. scheduler .. ':' .. State.whole(slot)
end

-- Count and fields of a stored scheduler; nil when it cannot be read.
local function read_scheduler(raw)
  if #raw <= COUNT_BYTES then return nil end
  local ok, _, fields = pcall(cmsgpack.unpack_limit, raw, 1, COUNT_BYTES)
  if not ok or type(fields) ~= 'table' or type(fields[5]) ~= 'number' or type(fields[6]) ~= 'number' then return nil end
  return struct.unpack('<d', raw), fields
end

-- The first slot after a time.
local function slot_after(ms, every_ms, offset_ms)
  local slot = math.floor(ms / every_ms) * every_ms + offset_ms
  while slot <= ms do slot = slot + every_ms end
  return slot
end

-- What becomes of iterations that were missed: the next one was due before a worker took them. Unless it is said, the one that is there runs late.
local CATCH_UP = { NONE = 1, LATEST = 2, ALL = 3 }

-- The slot that follows one, and whether that one was missed; catch_up and jitter_ms may be left out.
local function next_slot(slot, every_ms, offset_ms, now_ms, catch_up, jitter_ms)
  local following = slot + every_ms
  if following + (jitter_ms or 0) >= now_ms then return following, false end
  if catch_up == CATCH_UP.ALL then return following, true end
  local after = slot_after(now_ms, every_ms, offset_ms)
  return catch_up == CATCH_UP.LATEST and math.max(after - every_ms, following) or after, true
end

-- When an iteration is due: the same, whoever asks, and how often.
local function due_of(it)
  if (it.jitter_ms or 0) == 0 then return it.slot end
  return it.slot + tonumber(redis.sha1hex(it.id):sub(1, DIGITS), 16) % (it.jitter_ms + 1)
end

local function iteration_options(it, now_ms)
  local slot = State.whole(it.slot)
  return it.options .. '"timestamp":' .. State.whole(now_ms) .. ',"jobId":' .. it.id_text .. slot .. '","delay":'
    .. State.whole(math.max(due_of(it) - now_ms, 0)) .. (it.every_ms == 0 and ',"prevMillis":' .. slot .. '}' or '}')
end

-- What iterations enter when their slot has come.
local function enter_now(queue, iterations)
  local ids, names, ranked, references, front, grouped, groups, priorities = {}, {}, {}, {}, {}, {}, {}, {}
  for i, it in ipairs(iterations) do
    ids[i], names[i] = it.id, it.name
    if it.group then
      WaitingList.append(grouped, it.id)
      WaitingList.append(groups, it.group)
      WaitingList.append(priorities, it.priority)
    elseif it.priority ~= 0 then
      WaitingList.append(ranked, it.priority * Prioritized.PRIORITY_STEP + Prioritized.next_place(queue), it.id)
    elseif it.lifo then
      table.insert(front, 1, it.id)
    else
      references[#references + 1] = it.id
    end
  end
  Events.emit(queue, 2 * #ids, { 'B', ids, #ids, names, 'waiting' })
  WaitingList.call_in_chunks('ZADD', queue.base .. 'prioritized', ranked)
  if #references > 0 then WaitingList.append_references(queue, references) end
  if #front > 0 then WaitingList.push_front(queue, front) end
  if #grouped > 0 then Groups.enter_end(queue, grouped, GroupSize.names_of(groups), priorities) end
end

local function enter_delayed(queue, iterations)
  local ids, names, dues = {}, {}, {}
  for i, it in ipairs(iterations) do
    ids[i], names[i], dues[i] = it.id, it.name, due_of(it)
    if it.priority ~= 0 then Prioritized.expect_priorities(queue) end
  end
  Events.emit(queue, 2 * #ids, { 'B', ids, #ids, names, 'delayed', dues })
  return Delayed.delay_jobs(queue, ids, dues)
end

-- Adds iterations, in order, and wakes who waits for them.
local function add_iterations(queue, iterations, now_ms)
  local fields, vitals, later, due = {}, {}, {}, {}
  for i, it in ipairs(iterations) do
    fields[2 * i - 1] = it.id
    local group, priority = it.group and GroupSize.names_of({ it.group })[1], (it.priority ~= 0 or it.group) and it.priority or nil
    fields[2 * i] = cmsgpack.pack({ now_ms, iteration_options(it, now_ms), it.name, it.data, priority, group })
    if group then
      GroupSize.note(queue, { it.id }, { it.group }, 0)
      Groups.expect(queue)
    end
    if it.terms then
      local expires, limits = Terms.split(it.terms)
      if expires and expires < 0 then expires = due_of(it) - expires end
      WaitingList.append(vitals, it.id, cmsgpack.pack({ ex = expires, kl = limits }))
    end
    local list = due_of(it) > now_ms and later or due
    list[#list + 1] = it
  end
  queue.id = queue.id + #iterations
  WaitingList.call_in_chunks('HSET', queue.base .. 'jobs', fields)
  WaitingList.call_in_chunks('HSET', queue.base .. 'vitals', vitals)
  local sooner = #later > 0 and enter_delayed(queue, later)
  if #due > 0 then enter_now(queue, due) end
  if sooner or #due > 0 then WaitingList.wake(queue) end
end

-- What time it is for a scheduler whose iteration was taken, and how its clock_ms changes, if it does. A clock that is fast takes no run for missed which
-- a slow one has made, and took for early.
local function common_clock(known, now_ms, server_ms)
  local own = now_ms - server_ms
  if math.abs(own) > FAKE_MS then return now_ms, nil end
  local slowest = known and own > known and math.min(own, known + FORGET_MS) or own
  local common = math.max(math.min(now_ms, server_ms + (known or own)), now_ms - CLOCKS_MS)
  return common, (not known or math.abs(slowest - known) >= FORGET_MS) and slowest or nil
end

-- Its clock_ms, once it is upserted. before: the stored fields, or nil.
local function clock_of(before, now_ms)
  local known = before and before[CLOCK]
  local _, changed = common_clock(known, now_ms, Groups.server_ms())
  return changed or known
end

-- A scheduler as it is stored.
local function pack_scheduler(count, fields) return struct.pack('<d', count) .. cmsgpack.pack(fields) end

-- Whether a located job stands to start.
local function is_pending(found)
  return found ~= nil and (found.state == 'waiting' or found.state == 'delayed' or found.state == 'prioritized')
end

-- The iteration of this slot, where it stands to start and never did.
local function pending_at(queue, scheduler, slot)
  local found = Find.locate(queue, iteration_id(scheduler, slot))
  if not is_pending(found) then return nil end
  return (Stored.fields(redis.call('HGET', queue.base .. 'vitals', found.id)).as or 0) == 0 and found or nil
end

-- A located job, of which nobody is told, is gone.
local function take_out(queue, found)
  if found.state == 'waiting' then
    Locate.leave_waiting(queue, found)
  else
    redis.call('ZREM', queue.base .. found.state, found.id)
    if found.state == 'completed' then queue.completed = queue.completed - 1 end
  end
  Records.drop_records(queue, { found.id })
end

return {
  COUNT_BYTES = COUNT_BYTES,
  CLOCK = CLOCK,
  HELD = HELD,
  CLOCKS_MS = CLOCKS_MS,
  CATCH_UP = CATCH_UP,
  iteration_id = iteration_id,
  read_scheduler = read_scheduler,
  slot_after = slot_after,
  next_slot = next_slot,
  due_of = due_of,
  common_clock = common_clock,
  clock_of = clock_of,
  iteration_options = iteration_options,
  pack_scheduler = pack_scheduler,
  is_pending = is_pending,
  pending_at = pending_at,
  take_out = take_out,
  add_iterations = add_iterations,
}
