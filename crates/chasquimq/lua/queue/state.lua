-- state: a queue, as what runs in the server sees it: a table with its counters, which are read once and written once a call, and what the
-- call has gathered of it. Every function takes the queue that it works on; a call that reaches several opens each of them (queue/other_queues).
--   state  string of eighteen doubles: id (last job number), cursor_ms and cursor_seq (last log entry that left the waiting list), waiting, active and
--          completed (numbers of jobs), references (number of reference entries ever), event_ms and event_seq (last event), event_fresh
--          (events since the log was last marked, queue/event_log), holes (waiting frames with a touched job), stale (stale references in the
--          waiting list), max_events (cap of the event log, in events), place (states/prioritized), flows (1: a job of this queue has had a parent or
--          children), max_length (rules/length; 0 = none), unlimited (1: its settings limit no starts, rules/limits; 0: they may), apart
--          (frames in the log that lie apart, jobs/frame). A state that was written before there was one of these has fewer: the rest is 0. Where
--          there is none it is told by the other keys (queue/recovery)
--   memo:last-event  two doubles: event_ms and event_seq of a queue that was obliterated, kept a while: who listens waits for what comes behind it
-- Also of a queue: base; raw (the state as it is stored); call, what all queues of a call share: home (the queue that it was sent to), queues
-- (the others, by base), and what states/parents and jobs/records note; is_safe: the call has seen to it that it is not refused half-way; has_forgotten: there was no
-- state, and nobody who waits: it is new, or was emptied.
local Recovery = require('recovery')
local Schema = require('schema')
local WaitingWorkers = require('waiting_workers')

-- Tables whose lists are made when they are first asked for: most calls need few of them, and each that is made costs its making and its
-- collection.
local WITH_LISTS = {
  __index = function(of, name)
    local list = {}
    of[name] = list
    return list
  end,
}

local FORMAT, BYTES = '<dddddddddddddddddd', 144
-- The fourth and the fourteenth of them.
local WAITING_AT, PLACE_AT = 25, 105
local NEW = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 0, 0, 0, 0 }

-- Ends the call: a key of the queue holds what is not of it.
local function refuse_key(queue, suffix, found)
  error({ err = 'WRONGTYPE Key ' .. queue.base .. suffix .. ' holds a ' .. found .. ', which is not of this queue' })
end

-- A queue that is used for the first time, or of which much is about to be written: what lies under its names must not be somebody else's. Gives which of
-- its keys there are, by name.
local function check_types(queue)
  local there = {}
  for suffix, type_name in pairs(Schema.types) do
    local found = redis.call('TYPE', queue.base .. suffix).ok
    if found ~= 'none' and found ~= type_name then refuse_key(queue, suffix, found) end
    there[suffix] = found ~= 'none' or nil
  end
  return there
end

local function with_lists(of)
  return setmetatable(of, WITH_LISTS)
end

-- A queue of this state; false: it has none.
local function of_state(base, raw)
  local id, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq, event_fresh, holes, stale, max_events, place,
    flows, max_length, unlimited, apart = struct.unpack(FORMAT, raw or struct.pack(FORMAT, unpack(NEW)))
  return { base = base, raw = raw, event_groups = {}, event_count = 0, id = id, cursor_ms = cursor_ms, cursor_seq = cursor_seq,
    waiting = waiting, active = active, completed = completed, references = references, event_ms = event_ms, event_seq = event_seq,
    event_fresh = event_fresh, holes = holes, stale = stale, max_events = max_events, place = place, flows = flows,
    max_length = max_length, unlimited = unlimited, apart = apart }
end

-- The number of jobs that wait, by a state as it is stored.
local function waiting_in(raw)
  return (struct.unpack('<d', raw, WAITING_AT))
end

-- The last place of a job with a priority, in the same way.
local function place_in(raw)
  return #raw < BYTES and 0 or (struct.unpack('<d', raw, PLACE_AT))
end

-- call: that of the queue from which this one is reached; nil for the queue that the call was sent to. read: the state, if the caller
-- has read it; false: there is none.
local function open(base, call, read)
  local raw = read
  if raw == nil then raw = redis.call('GET', base .. 'state') end
  if raw and #raw < BYTES then raw = raw .. string.rep('\0', BYTES - #raw) end
  local queue = of_state(base, raw)
  queue.call = call or with_lists({ home = queue, by_turn = false })
  if raw then return queue end
  local there = check_types(queue)
  queue.has_forgotten = not there['waiting-workers']
  local last = redis.call('GET', base .. 'memo:last-event')
  if last and #last == 16 then queue.event_ms, queue.event_seq = struct.unpack('<dd', last) end
  if next(there) then Recovery.derive(queue, there) end
  return queue
end

-- A number of jobs. What another key has lost may leave it still, and is counted once.
local function count(number)
  return number > 0 and number or 0
end

local function save_state(queue)
  local raw = struct.pack(FORMAT, queue.id, queue.cursor_ms, queue.cursor_seq, count(queue.waiting), count(queue.active), count(queue.completed),
    queue.references, queue.event_ms, queue.event_seq, queue.event_fresh, count(queue.holes), count(queue.stale), queue.max_events, queue.place,
    queue.flows, queue.max_length, queue.unlimited, count(queue.apart))
  if raw == queue.raw then return end
  redis.call('SET', queue.base .. 'state', raw)
  if queue.has_forgotten then
    WaitingWorkers.tell_all(queue.base)
    queue.has_forgotten = false
  end
  queue.raw = raw
end

-- Lua prints large doubles in exponent form, which ids never have.
local function whole(number)
  return string.format('%d', number)
end

local function entry_id(ms, seq)
  return string.format('%d-%d', ms, seq)
end

return {
  FORMAT = FORMAT,
  BYTES = BYTES,
  refuse_key = refuse_key,
  check_types = check_types,
  with_lists = with_lists,
  waiting_in = waiting_in,
  place_in = place_in,
  count = count,
  open = open,
  save_state = save_state,
  whole = whole,
  entry_id = entry_id,
}
