-- trims: how the event log is kept short (lib/events). S.event_fresh counts the events since the last mark.
local TRIM_MARKS = 8

local function count_events(count)
  S.event_fresh = S.event_fresh + count
  if S.event_fresh * TRIM_MARKS < S.max_events then return end
  S.event_fresh = 0
  local marks = redis.call('RPUSH', base .. 'trims', entry_id(S.event_ms, S.event_seq))
  if marks > TRIM_MARKS then
    redis.call('XTRIM', base .. 'events', 'MINID', '~', redis.call('LPOP', base .. 'trims'))
  end
end
