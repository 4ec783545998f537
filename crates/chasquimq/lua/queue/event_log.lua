-- event_log: the place of a call's events in their log, and how that is kept short (queue/events). queue.event_fresh counts the events since the
-- last mark.
local State = require('state')

local TRIM_MARKS = 8

-- Writes the entry of `count` events that were given their place, and behind their groups other fields. One that another program wrote may
-- lie behind it.
local function write_events(queue, count, groups, fields)
  local written = redis.pcall('XADD', queue.base .. 'events', State.entry_id(queue.event_ms, queue.event_seq), 'e', groups, unpack(fields))
  if type(written) ~= 'table' then return end
  local last = redis.call('XREVRANGE', queue.base .. 'events', '+', '-', 'COUNT', 1)[1]
  local ms, seq = (last and last[1] or '0-0'):match('^(%d+)-(%d+)$')
  queue.event_ms, queue.event_seq = tonumber(ms), tonumber(seq) + count
  State.save_state(queue)
  redis.call('XADD', queue.base .. 'events', State.entry_id(queue.event_ms, queue.event_seq), 'e', groups, unpack(fields))
end

-- Whether the log is to be marked, and perhaps trimmed, when there are so many events since the last mark.
local function is_eighth(event_fresh, max_events)
  return event_fresh * TRIM_MARKS >= max_events
end

-- The same, when so many more are in it.
local function is_mark_due(queue, count)
  return is_eighth(queue.event_fresh + count, queue.max_events)
end

-- Gives the next `count` events their place: queue.event_ms and queue.event_seq are those of the last of them.
local function place_events(queue, count, now_ms)
  if now_ms > queue.event_ms then
    queue.event_ms, queue.event_seq = now_ms, count
  else
    queue.event_seq = queue.event_seq + count
  end
  local is_due = is_mark_due(queue, count)
  queue.event_fresh = is_due and 0 or queue.event_fresh + count
  if not is_due then return end
  local marks = redis.call('RPUSH', queue.base .. 'trims', State.entry_id(queue.event_ms, queue.event_seq))
  if marks > TRIM_MARKS then
    redis.call('XTRIM', queue.base .. 'events', 'MINID', '~', redis.call('LPOP', queue.base .. 'trims'))
  end
end

return {
  is_eighth = is_eighth,
  is_mark_due = is_mark_due,
  write_events = write_events,
  place_events = place_events,
}
