-- events: one stream entry a script call. Its first field holds MessagePack groups, one behind the other:
--   {A, first, n, names, ids}       `added` and `waiting` of n jobs numbered from first; names: one text, or one a job; ids: only of
--                                   children, what theirs begin with (lib/frame)
--   {a, first, n, ids}              `active`, prev waiting
--   {C, first, n, results, ids}     `completed`, prev active; results: '' or a MessagePack array of JSON texts ('' = undefined)
--   {B, ids, n, names, event, dues} `added`, then `event`, for n records; ids: numbered from this number, or one a job; dues: or nil
--   {X, event, ids, field, value..} `event` a job; value: one text for all, or one a job
--   {L, id}                         `completed`, prev active, of a job whose result is large (lib/large): it is in a field v of its own behind
--                                   this one, the first such group's in the first
--   {E, event, field, value..}      an event of the queue
-- The entry's id is that of its last event; the events before it count down from there, so any event can be resumed from.
-- The log keeps the newest max_events events, and up to an eighth more: a mark is set after each eighth, and what lies before the
-- oldest of eight marks is trimmed.
--   trims  list of the ids of the last events at the marks
-- large_values: the fields behind the groups.
local event_groups, event_count, large_values = {}, 0, {}

-- @include lib/trims

local function write_group(count, group)
  event_groups[#event_groups + 1] = cmsgpack.pack(group)
  event_count = event_count + count
end

-- The group that the latest job's event may join: event, ids, prev (the same for all), and another field with a value a job.
local open_group

local function close_group()
  local g = open_group
  if not g then return end
  open_group = nil
  local group = { 'X', g.event, g.ids }
  if g.field then
    group[4], group[5] = g.field, g.values
  end
  if g.prev then
    group[#group + 1] = 'prev'
    group[#group + 1] = g.prev
  end
  write_group(#g.ids, group)
end

-- A group of `count` events.
local function emit(count, group)
  close_group()
  write_group(count, group)
end

-- @cold
-- One job's event. Events of a kind that follow each other share a group.
local function emit_job(event, id, prev, field, value)
  local g = open_group
  if not (g and g.event == event and g.prev == prev and g.field == field) then
    close_group()
    g = { event = event, ids = {}, prev = prev, field = field, values = {} }
    open_group = g
  end
  local n = #g.ids + 1
  g.ids[n] = id
  if field then g.values[n] = value end
end
-- @warm

-- Ends a script's changes: saves the state, then writes the events. In this order: a script that the server refuses half-way must
-- not leave a stream ahead of the state that numbers its entries, or every later one would be refused.
local function flush_events(now_ms)
  close_group()
  if event_count == 0 then
    save_state()
    return
  end
  place_events(event_count, now_ms)
  save_state()
  write_events(event_count, table.concat(event_groups), large_values)
end
