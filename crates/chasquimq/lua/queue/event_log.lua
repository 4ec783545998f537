-- event_log: the place of a call's events in their log, and how that is kept short (queue/events). queue.event_fresh counts the events since the
-- last mark.
local State = require('state')

local TRIM_MARKS = 8
-- How far the caller's clock is followed beyond the last event.
local TRUSTED_MS = 60000

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

-- Whether the server's clock gives the next events their place. That of a caller may be far ahead, or have been: once the log is lost, what is
-- written would lie before what its readers know.
local function is_far(event_ms, now_ms)
  return event_ms == 0 or now_ms > event_ms + TRUSTED_MS
end

-- Whether more than a new entry is due in the log: a mark, or a look at the server's clock.
local function needs_care(event_fresh, max_events, event_ms, now_ms)
  return is_eighth(event_fresh, max_events) or is_far(event_ms, now_ms)
end

local function server_ms()
  local time = redis.pcall('TIME')
  return not time.err and time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Gives the next `count` events their place: queue.event_ms and queue.event_seq are those of the last of them.
local function place_events(queue, count, now_ms)
  if is_far(queue.event_ms, now_ms) then now_ms = server_ms() or now_ms end
  if now_ms > queue.event_ms then
    queue.event_ms, queue.event_seq = now_ms, count
  else
    queue.event_seq = queue.event_seq + count
  end
  local is_due, fresh = is_mark_due(queue, count), queue.event_fresh + count
  queue.event_fresh = is_due and 0 or fresh
  if not is_due then return end
  -- those since the last mark may do alone
  local most = fresh < queue.max_events and TRIM_MARKS or math.min(queue.max_events, 1)
  local marks, oldest = redis.call('RPUSH', queue.base .. 'trims', State.entry_id(queue.event_ms, queue.event_seq)), nil
  for _ = most + 1, marks do oldest = redis.call('LPOP', queue.base .. 'trims') end
  -- to the entry: one entry may hold the events of a thousand jobs
  if oldest then redis.call('XTRIM', queue.base .. 'events', 'MINID', oldest) end
end

return {
  needs_care = needs_care,
  is_mark_due = is_mark_due,
  write_events = write_events,
  place_events = place_events,
}
