-- schedulers: what makes jobs again and again. A scheduler's latest iteration is an ordinary record, with the id repeat:<scheduler>:<slot>;
-- the slot is the time (epoch ms) for which it was made. It belongs to its scheduler until a worker has taken it and the next one is there.
--   schedulers  sorted set of ids by the slot of the latest iteration
--   scheduler   id -> count of iterations (a double), then a MessagePack array: name, data (JSON text), template (JSON text of its
--               options), repeat (JSON text: when it runs, as the user said), every_ms (0 = at times the caller computes), offset_ms of
--               its slots from multiples of every_ms
-- An iteration to write is {id, slot, name, data, every_ms, priority, lifo, group, options, id_text}. group: as add names it, or nil. options: the JSON text of its options, but for
-- those that depend on the slot, and its closing brace; id_text: the JSON text of its id up to the slot.
local Delayed = require('delayed')
local Events = require('events')
local GroupSize = require('group_size')
local Groups = require('groups')
local Prioritized = require('prioritized')
local State = require('state')
local WaitingList = require('waiting_list')

local COUNT_BYTES = 8

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

-- The slot that follows one; what was missed meanwhile is skipped.
local function next_slot(slot, every_ms, offset_ms, now_ms)
  local following = slot + every_ms
  return following < now_ms and slot_after(now_ms, every_ms, offset_ms) or following
end

local function iteration_options(it, now_ms)
  local slot = State.whole(it.slot)
  return it.options .. '"timestamp":' .. State.whole(now_ms) .. ',"jobId":' .. it.id_text .. slot .. '","delay":'
    .. State.whole(math.max(it.slot - now_ms, 0)) .. (it.every_ms == 0 and ',"prevMillis":' .. slot .. '}' or '}')
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
    ids[i], names[i], dues[i] = it.id, it.name, it.slot
    if it.priority ~= 0 then Prioritized.expect_priorities(queue) end
  end
  Events.emit(queue, 2 * #ids, { 'B', ids, #ids, names, 'delayed', dues })
  return Delayed.delay_jobs(queue, ids, dues)
end

-- Adds iterations, in order, and wakes who waits for them.
local function add_iterations(queue, iterations, now_ms)
  local fields, later, due = {}, {}, {}
  for i, it in ipairs(iterations) do
    fields[2 * i - 1] = it.id
    local group, priority = it.group and GroupSize.names_of({ it.group })[1], (it.priority ~= 0 or it.group) and it.priority or nil
    fields[2 * i] = cmsgpack.pack({ now_ms, iteration_options(it, now_ms), it.name, it.data, priority, group })
    if group then
      GroupSize.note(queue, { it.id }, { it.group }, 0)
      Groups.expect(queue)
    end
    local list = it.slot > now_ms and later or due
    list[#list + 1] = it
  end
  queue.id = queue.id + #iterations
  WaitingList.call_in_chunks('HSET', queue.base .. 'jobs', fields)
  local sooner = #later > 0 and enter_delayed(queue, later)
  if #due > 0 then enter_now(queue, due) end
  if sooner or #due > 0 then WaitingList.wake(queue) end
end

return {
  COUNT_BYTES = COUNT_BYTES,
  iteration_id = iteration_id,
  read_scheduler = read_scheduler,
  slot_after = slot_after,
  next_slot = next_slot,
  add_iterations = add_iterations,
}
