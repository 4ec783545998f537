-- events: one stream entry a call. Its first field holds MessagePack groups, one behind the other:
--   {A, first, n, names, ids}       `added` and `waiting` of n jobs numbered from first; names: one text, or one a job; ids: only of
--                                   children, what theirs begin with (jobs/frame)
--   {a, first, n, ids}              `active`, prev waiting
--   {C, first, n, results, ids}     `completed`, prev active; results: '' or a MessagePack array of JSON texts ('' = undefined)
--   {B, ids, n, names, event, dues} `added`, then `event`, for n records; ids: numbered from this number, or one a job; dues: or nil
--   {X, event, ids, field, value..} `event` a job; value: one text for all, or one a job
--   {L, id}                         `completed`, prev active, of a job whose result is large (jobs/large): it is in a field v of its own behind
--                                   this one, the first such group's in the first
--   {E, event, field, value..}      an event of the queue
-- Why so many kinds: the four events of a job in a frame (A, a, C) take 1.7 bytes in the log, those of a record (B, X) 28.
-- The entry's id is that of its last event; the events before it count down from there, so any event can be resumed from.
-- The log keeps the newest max_events events, and up to an eighth more, or those of two calls: a mark is set after each eighth, and what lies before the
-- oldest of eight marks is trimmed.
--   trims  list of the ids of the last events at the marks
-- Of a queue: event_groups; event_count, of the events in them; large_values, the fields behind the groups, if there are any; open_group, the one that the latest
-- job's event may join: event, ids, prev (the same for all), and another field with a value a job.
local EventLog = require('event_log')
local State = require('state')

local NO_VALUES = {}

local function write_group(queue, count, group)
  queue.event_groups[#queue.event_groups + 1] = cmsgpack.pack(group)
  queue.event_count = queue.event_count + count
end

local function close_group(queue)
  local g = queue.open_group
  if not g then return end
  queue.open_group = nil
  local group = { 'X', g.event, g.ids }
  if g.field then
    group[4], group[5] = g.field, g.values
  end
  if g.prev then
    group[#group + 1] = 'prev'
    group[#group + 1] = g.prev
  end
  write_group(queue, #g.ids, group)
end

-- A group of `count` events.
local function emit(queue, count, group)
  close_group(queue)
  write_group(queue, count, group)
end

-- One job's event. Events of a kind that follow each other share a group.
local function emit_job(queue, event, id, prev, field, value)
  local g = queue.open_group
  if not (g and g.event == event and g.prev == prev and g.field == field) then
    close_group(queue)
    g = { event = event, ids = {}, prev = prev, field = field, values = {} }
    queue.open_group = g
  end
  local n = #g.ids + 1
  g.ids[n] = id
  if field then g.values[n] = value end
end

-- Ends a script's changes: saves the state, then writes the events. In this order: a script that the server refuses half-way must
-- not leave a stream ahead of the state that numbers its entries, or every later one would be refused.
local function flush_events(queue, now_ms)
  close_group(queue)
  if queue.event_count == 0 then
    State.save_state(queue)
    return
  end
  EventLog.place_events(queue, queue.event_count, now_ms)
  State.save_state(queue)
  local groups = queue.event_groups
  EventLog.write_events(queue, queue.event_count, groups[2] and table.concat(groups) or groups[1], queue.large_values or NO_VALUES)
end

return {
  close_group = close_group,
  emit = emit,
  emit_job = emit_job,
  flush_events = flush_events,
}
