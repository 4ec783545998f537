-- state: the queue's counters, one string of twelve doubles read once and written once a script call.
-- Fields: id (last job number), cursor_ms and cursor_seq (last log entry that left the line), waiting, active and completed
-- (numbers of jobs), references (number of reference entries ever), event_ms and event_seq (last event), event_weight
-- (running mean of events an entry), holes (waiting frames with a touched job), gone (stale references in the line).
local S = {}
do
  local raw = redis.call('GET', base .. 'state')
  if raw then
    S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active, S.completed, S.references, S.event_ms, S.event_seq,
      S.event_weight, S.holes, S.gone = struct.unpack('<dddddddddddd', raw)
  else
    S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active, S.completed, S.references, S.event_ms, S.event_seq,
      S.event_weight, S.holes, S.gone = 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0
  end
end

local function save_state()
  redis.call('SET', base .. 'state', struct.pack('<dddddddddddd', S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active,
    S.completed, S.references, S.event_ms, S.event_seq, S.event_weight, S.holes, S.gone))
end

-- Lua prints large doubles in exponent form; ids never are.
local function whole(number)
  return string.format('%.0f', number)
end

local function entry_id(ms, seq)
  return string.format('%.0f-%.0f', ms, seq)
end
