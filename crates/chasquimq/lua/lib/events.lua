-- events: one stream entry a script call. Its one field holds MessagePack groups, one behind the other:
--   {A, first, n, names}            `added` and `waiting` of n jobs numbered from first; names: one text, or one a job
--   {a, first, n}                   `active`, prev waiting
--   {C, first, n, results}          `completed`, prev active; results: '' or a MessagePack array of JSON texts ('' = undefined)
--   {B, ids, names, event, delays}  `added`, then `event`, a job; delays: due times, or nil
--   {X, event, ids, field, value..} `event` a job; value: one text for all, or one a job
--   {E, event, field, value..}      an event of the queue
-- The entry's id is that of its last event; the events before it count down from there, so any event can be resumed from.
local event_groups, event_count = {}, 0

local function emit(count, group)
  event_groups[#event_groups + 1] = cmsgpack.pack(group)
  event_count = event_count + count
end

local function flush_events(now_ms)
  if event_count == 0 then return end
  if now_ms > S.event_ms then
    S.event_ms, S.event_seq = now_ms, event_count
  else
    S.event_seq = S.event_seq + event_count
  end
  S.event_weight = S.event_weight * 0.98 + event_count * 0.02
  local entries = math.ceil(S.max_events / math.max(S.event_weight, 1))
  redis.call('XADD', base .. 'events', 'MAXLEN', '~', whole(entries), entry_id(S.event_ms, S.event_seq),
    'e', table.concat(event_groups))
end
