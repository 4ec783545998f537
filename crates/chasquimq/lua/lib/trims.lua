-- trims: the place of a call's events in their log, and how that is kept short (lib/events). S.event_fresh counts the events since the
-- last mark.
local TRIM_MARKS = 8

-- Writes the entry of `count` events that were given their place, and behind their groups other fields. One that another program wrote may
-- lie behind it.
local function write_events(count, groups, fields)
  local written = redis.pcall('XADD', base .. 'events', entry_id(S.event_ms, S.event_seq), 'e', groups, unpack(fields))
  if type(written) ~= 'table' then return end
  local last = redis.call('XREVRANGE', base .. 'events', '+', '-', 'COUNT', 1)[1]
  local ms, seq = (last and last[1] or '0-0'):match('^(%d+)-(%d+)$')
  S.event_ms, S.event_seq = tonumber(ms), tonumber(seq) + count
  save_state()
  redis.call('XADD', base .. 'events', entry_id(S.event_ms, S.event_seq), 'e', groups, unpack(fields))
end

-- Gives the next `count` events their place: S.event_ms and S.event_seq are those of the last of them.
local function place_events(count, now_ms)
  if now_ms > S.event_ms then
    S.event_ms, S.event_seq = now_ms, count
  else
    S.event_seq = S.event_seq + count
  end
  S.event_fresh = S.event_fresh + count
  if S.event_fresh * TRIM_MARKS < S.max_events then return end
  S.event_fresh = 0
  local marks = redis.call('RPUSH', base .. 'trims', entry_id(S.event_ms, S.event_seq))
  if marks > TRIM_MARKS then
    redis.call('XTRIM', base .. 'events', 'MINID', '~', redis.call('LPOP', base .. 'trims'))
  end
end
