-- state: the queue's counters, one string of sixteen doubles read once and written once a script call.
-- Fields: id (last job number), cursor_ms and cursor_seq (last log entry that left the line), waiting, active and completed
-- (numbers of jobs), references (number of reference entries ever), event_ms and event_seq (last event), event_fresh
-- (events since the log was last marked, lib/trims), holes (waiting frames with a touched job), gone (stale references in the line),
-- max_events (cap of the event log, in events), place (lib/priority), flows (1: a job of this queue has had a parent or children),
-- max_length (lib/length; 0 = none).
local S = {}

-- @cold
-- The number of a numbered job, for sorting; other ids come last. tonumber alone reads more than numbers, nan for one.
local function number_of(id)
  return id:match('^%d+$') and tonumber(id) or math.huge
end

-- Ends the call: a key of the queue holds what is not of it.
local function refuse_key(suffix, kind)
  error({ err = 'WRONGTYPE Key ' .. base .. suffix .. ' holds a ' .. kind .. ', which is not of this queue' })
end
-- @warm

local function load_state()
  local raw = redis.call('GET', base .. 'state')
  if raw then
    S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active, S.completed, S.references, S.event_ms, S.event_seq,
      S.event_fresh, S.holes, S.gone, S.max_events, S.place, S.flows, S.max_length = struct.unpack('<dddddddddddddddd', raw)
  else
    -- a queue that is used for the first time: what lies under its names must not be somebody else's
    for suffix, kind in pairs({ meta = 'hash', log = 'stream', front = 'list', takes = 'hash', frames = 'hash', holes = 'hash',
      gone = 'hash', jobs = 'hash', vitals = 'hash', traces = 'hash', large = 'hash', active = 'hash', delayed = 'zset',
      prioritized = 'zset', ['waiting-children'] = 'zset', completed = 'zset', runs = 'hash', failed = 'zset', events = 'stream', trims = 'list', wake = 'zset', delays = 'string',
      stalled = 'string', logged = 'set', limiter = 'string', open = 'zset', schedulers = 'zset', scheduler = 'hash', parents = 'set', ['metrics:completed'] = 'hash', ['metrics:failed'] = 'hash',
      ['metrics:completed:data'] = 'list', ['metrics:failed:data'] = 'list' }) do
      local found = redis.call('TYPE', base .. suffix).ok
      if found ~= 'none' and found ~= kind then
        refuse_key(suffix, found)
      end
    end
    S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active, S.completed, S.references, S.event_ms, S.event_seq,
      S.event_fresh, S.holes, S.gone, S.max_events, S.place, S.flows, S.max_length = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10000, 0, 0, 0
  end
end

load_state()

local function save_state()
  redis.call('SET', base .. 'state', struct.pack('<dddddddddddddddd', S.id, S.cursor_ms, S.cursor_seq, S.waiting, S.active,
    S.completed, S.references, S.event_ms, S.event_seq, S.event_fresh, S.holes, S.gone, S.max_events, S.place, S.flows, S.max_length))
end

-- Lua prints large doubles in exponent form, which ids never have.
local function whole(number)
  return string.format('%d', number)
end

local function entry_id(ms, seq)
  return string.format('%d-%d', ms, seq)
end
