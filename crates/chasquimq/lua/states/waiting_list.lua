-- waiting_list: the ways into the waiting list. It is: the front list, then the log from the cursor on.
-- A reference entry's id is <last job number>-<2^40 + count>: above every frame of that number, below the next one.
-- Why references: up to a thousand records that are added together wait in one entry, which costs one command.
local ForeignEntries = require('foreign_entries')
local State = require('state')
local WaitingWorkers = require('waiting_workers')

local REFERENCE_SEQ = 1099511627776

-- Writes an entry of the log.
local function append_entry(queue, id, field, blob)
  local written = redis.pcall('XADD', queue.base .. 'log', id, field, blob)
  if type(written) ~= 'table' then return end
  ForeignEntries.clear_end_of_log(queue, id, written)
  redis.call('XADD', queue.base .. 'log', id, field, blob)
end

-- An entry holds what one call takes as arguments (Lua's stack is small). The state is saved before (queue/events says
-- why), unless the script has seen to it that it is not refused half-way.
local function append_references(queue, ids, number)
  local count = queue.references
  queue.references, queue.waiting = queue.references + math.ceil(#ids / 1000), queue.waiting + #ids
  if not queue.is_safe then State.save_state(queue) end
  for from = 1, #ids, 1000 do
    count = count + 1
    append_entry(queue, State.entry_id(number or queue.id, REFERENCE_SEQ + count), 'r',
      cmsgpack.pack(#ids <= 1000 and ids or { unpack(ids, from, math.min(from + 999, #ids)) }))
  end
end

-- Puts ids at the head of the waiting list, the first of them first.
local function push_front(queue, ids)
  for last = #ids, 1, -1000 do
    local args = {}
    for i = last, math.max(last - 999, 1), -1 do args[#args + 1] = ids[i] end
    redis.call('LPUSH', queue.base .. 'front', unpack(args))
  end
  queue.waiting = queue.waiting + #ids
end

-- Whether a job could start: it waits, maybe with a priority (states/prioritized) or in a group (states/groups).
local function has_work(queue)
  return queue.waiting > 0 or (queue.place > 0 and redis.call('EXISTS', queue.base .. 'prioritized', queue.base .. 'groups') > 0)
end

-- Tells a worker that there is something to do: one that waits (states/waiting_workers), or else, by the marker, the next one that would. Where the caller
-- says that more than one job waits, another one is told at once: the first one's handler may take the processor that it is to run on.
local function wake(queue)
  local base = queue.base
  if not WaitingWorkers.tell_one(base) then
    redis.call('ZADD', base .. 'wake', 0, '0')
  elseif queue.waiting and queue.waiting > 1 then
    WaitingWorkers.tell_one(base)
  end
end

-- Whether every worker is busy, as far as is known: a marker was left, and nobody who waits has taken it.
local function are_all_busy(base)
  return redis.call('EXISTS', base .. 'wake') == 1
end

-- Wakes a worker where a job could start, as one may that waits for a place.
local function wake_for_work(queue)
  if has_work(queue) then wake(queue) end
end

-- Calls a variadic command on a key with any number of arguments, a chunk at a time (Lua's stack is small).
local function call_in_chunks(command, key, args)
  for from = 1, #args, 4000 do
    redis.call(command, key, unpack(args, from, math.min(from + 3999, #args)))
  end
end

local function append(list, ...)
  local n = #list
  for i = 1, select('#', ...) do list[n + i] = select(i, ...) end
end

return {
  REFERENCE_SEQ = REFERENCE_SEQ,
  append_entry = append_entry,
  append_references = append_references,
  push_front = push_front,
  has_work = has_work,
  wake = wake,
  wake_for_work = wake_for_work,
  are_all_busy = are_all_busy,
  call_in_chunks = call_in_chunks,
  append = append,
}
