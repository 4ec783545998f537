-- recovery: what the state of a queue would say that has none, but other keys: a server that was full has deleted it, or a person has. It is counted:
-- how many jobs wait, are active or have completed, and which number no job has had yet, and which place no event. The call that changes the queue next
-- saves it.
-- It looks at each job, which takes the server a second a million of them. What cannot be told is taken for what holds in any queue: there may be flows,
-- priorities and limits.
local Stub = require('stub')

-- states/waiting_list; states/prioritized; migrate/adopt: no number is higher.
local REFERENCE_SEQ, FIRST_PLACE, PRIORITY_STEP, MOST_ID = 1099511627776, 16777216, 4294967296, 1e14
-- What is read at once, of entries, and of others; jobs of a frame.
local ENTRIES, PAGE, MOST_JOBS = 16, 1000, 64
-- So many of the latest entries of the event log are asked for the last job number, and of the completed jobs for how far the waiting list was read.
local LATEST = 100
-- First byte of a frame of children.
local OF_CHILDREN = 149

local function split(entry_id)
  local ms, seq = entry_id:match('^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

-- The number in an id that is nothing else; 0 for any other.
local function number_in(id)
  local number = type(id) == 'string' and #id <= 15 and id:match('^[1-9]%d*$') and tonumber(id) or 0
  return number < MOST_ID and number or 0
end

-- The last id that a stream has given, though its entry may be gone.
local function last_given(base, stream)
  local told = redis.pcall('XINFO', 'STREAM', base .. stream)
  for i = 1, told.err and 0 or #told, 2 do
    if told[i] == 'last-generated-id' then return split(told[i + 1]) end
  end
  -- there is none, or this user may not ask
  local last = redis.call('XREVRANGE', base .. stream, '+', '-', 'COUNT', 1)[1]
  if last then return split(last[1]) end
  return 0, 0
end

-- The highest job number that a group of events tells of (queue/events), or 0.
local function number_in_group(group)
  if type(group) ~= 'table' then return 0 end
  local kind, which, n, highest = group[1], group[2], group[3], 0
  if kind == 'A' and type(which) == 'number' and type(n) == 'number' then return which + n - 1 end
  if kind ~= 'B' then return 0 end
  if type(which) == 'number' then return which + (type(n) == 'number' and n or 1) - 1 end
  for _, id in ipairs(type(which) == 'table' and which or {}) do highest = math.max(highest, number_in(id)) end
  return highest
end

-- The same of the latest entry of the event log that tells of any.
local function number_in_events(base)
  for _, entry in ipairs(redis.call('XREVRANGE', base .. 'events', '+', '-', 'COUNT', LATEST)) do
    local groups, at, highest = entry[2][2] or '', 0, 0
    while at >= 0 and at < #groups do
      local ok, following, group = pcall(cmsgpack.unpack_one, groups, at)
      if not ok then break end
      highest, at = math.max(highest, number_in_group(group)), following
    end
    if highest > 0 then return highest end
  end
  return 0
end

local function number_in_records(base)
  local highest = 0
  for _, id in ipairs(redis.call('HKEYS', base .. 'jobs')) do highest = math.max(highest, number_in(id)) end
  return highest
end

-- Frames that somebody holds: first number -> which of their jobs are active ('' = all).
local function held_frames(base)
  local held, stored = {}, redis.call('HGETALL', base .. 'takes')
  for i = 1, #stored, 2 do
    local ok, holder = pcall(cmsgpack.unpack, stored[i + 1])
    local chars = ok and type(holder) == 'table' and holder[2]
    held[number_in(stored[i])] = type(chars) == 'string' and chars or ''
  end
  return held
end

-- The latest completed jobs that are no records: they were in frames.
local function completed_of_frames(base)
  local numbers = {}
  for _, member in ipairs(redis.call('ZREVRANGE', base .. 'completed', 0, LATEST - 1)) do
    if number_in(member) > 0 and redis.call('HEXISTS', base .. 'jobs', member) == 0 then numbers[#numbers + 1] = member end
  end
  return numbers
end

-- The highest number of a job that was taken out of the waiting list together with its frame, or 0. What is behind that in the log waits.
local function last_taken(base, held)
  local last = 0
  for first in pairs(held) do last = math.max(last, first) end
  for _, of in ipairs({ redis.call('HKEYS', base .. 'runs'), redis.call('HKEYS', base .. 'frames'), completed_of_frames(base) }) do
    for _, number in ipairs(of) do last = math.max(last, number_in(number)) end
  end
  return last
end

-- Places the cursor behind the frame of this number.
local function place_cursor(queue, number)
  queue.cursor_ms, queue.cursor_seq = 0, 0
  if number == 0 then return end
  queue.cursor_ms, queue.cursor_seq = number, MOST_JOBS
  local entry = redis.call('XREVRANGE', queue.base .. 'log', string.format('%d-%d', number, REFERENCE_SEQ - 1), '-', 'COUNT', 1)[1]
  local first, n = split(entry and entry[1] or '0-0')
  if number < first + n and n <= MOST_JOBS then
    queue.cursor_ms, queue.cursor_seq = first, n
  else
    -- its frame is gone
    queue.id = math.max(queue.id, number + MOST_JOBS - 1)
  end
end

-- Waiting frames of which a job was touched: first number -> how many of its jobs wait no more; and how many frames these are.
local function read_holes(base)
  local gone, stored = {}, redis.call('HGETALL', base .. 'holes')
  for i = 1, #stored, 2 do gone[number_in(stored[i])] = select(2, stored[i + 1]:gsub('0', '')) end
  return gone, #stored / 2
end

-- References in the log whose jobs wait no more.
local function count_stale(base)
  local stale, stored = 0, redis.call('HGETALL', base .. 'gone')
  for i = 2, #stored, 2 do stale = stale + (tonumber(stored[i]) or 0) end
  return stale
end

local function count_references(blob)
  local ok, ids = pcall(cmsgpack.unpack, blob)
  return ok and type(ids) == 'table' and #ids or 0
end

-- Looks at each entry of the log behind this one. Of the log: waiting (jobs), active (of the held frames), apart (frames), children (whether there
-- were any), number (the last), references (the last), is_stray (the last entry is another program's). held: nil where only waiting is asked for.
local function walk_log(queue, from, gone, held)
  local log, base = { waiting = 0, active = 0, apart = 0, children = false, number = 0, references = 0, is_stray = false }, queue.base
  local function look_at_frame(first, n, blob)
    log.number = first + n - 1
    if Stub.bytes(blob) then log.apart = log.apart + 1 end
    log.children = log.children or blob:byte(1) == OF_CHILDREN
    if first > queue.cursor_ms or (first == queue.cursor_ms and n > queue.cursor_seq) then
      log.waiting = log.waiting + n - (gone[first] or 0)
    elseif held and held[first] then
      log.active = log.active + (held[first] == '' and n or 0)
    end
  end
  repeat
    local entries = redis.call('XRANGE', base .. 'log', from, '+', 'COUNT', ENTRIES)
    for _, entry in ipairs(entries) do
      local ms, seq = split(entry[1])
      local field, blob = entry[2][1], entry[2][2] or ''
      log.is_stray = false
      if field == 'f' and seq >= 1 and seq <= MOST_JOBS then
        look_at_frame(ms, seq, blob)
      elseif field == 'r' and seq > REFERENCE_SEQ then
        log.references = seq - REFERENCE_SEQ
        log.waiting = log.waiting + count_references(blob)
      else
        log.is_stray = true
      end
      from = '(' .. entry[1]
    end
  until #entries == 0
  return log
end

-- Counts what waits behind the cursor, and in front.
local function count_waiting(queue)
  local gone, holes = read_holes(queue.base)
  local log = walk_log(queue, string.format('(%d-%d', queue.cursor_ms, queue.cursor_seq), gone)
  queue.holes, queue.stale = holes, count_stale(queue.base)
  queue.waiting = math.max(log.waiting - queue.stale, 0) + redis.call('LLEN', queue.base .. 'front')
end

-- Calls look(start, raw) for each completed run.
local function each_run(base, look)
  local cursor = '0'
  repeat
    local page = redis.call('HSCAN', base .. 'runs', cursor, 'COUNT', PAGE)
    cursor = page[1]
    for i = 1, #page[2], 2 do look(page[2][i], page[2][i + 1]) end
  until cursor == '0'
end

-- Completed jobs that are kept: records, and those in runs, an array of which the first value is their number (rules/retention).
local function count_completed(base)
  local records, jobs = redis.call('ZCARD', base .. 'completed'), 0
  each_run(base, function(_, raw) records, jobs = records - 1, jobs + (raw:byte(2) or 1) end)
  return math.max(records, 0) + jobs
end

-- The last place that was given to a job with a priority.
local function last_place(base)
  local place, from = FIRST_PLACE, 0
  repeat
    local page = redis.call('ZRANGE', base .. 'prioritized', from, from + PAGE - 1, 'WITHSCORES')
    for i = 2, #page, 2 do place = math.max(place, tonumber(page[i]) % PRIORITY_STEP) end
    from = from + PAGE
  until #page == 0
  return place
end

-- Numbers and entries of the log go on above all that there was.
local function derive_numbers(queue, log)
  local base = queue.base
  local ms, seq = 0, 0
  -- what another program wrote there makes place for what we write (states/foreign_entries)
  if not log.is_stray then ms, seq = last_given(base, 'log') end
  local of_log = seq <= MOST_JOBS and ms + math.max(seq, 1) - 1 or ms
  queue.id = math.max(queue.id, of_log, log.number, number_in_events(base), number_in_records(base))
  queue.references = math.max(log.references, seq - REFERENCE_SEQ, 0)
end

-- What the settings say of the queue.
local function derive_settings(queue)
  local stored = redis.call('HMGET', queue.base .. 'meta', 'opts.maxLenEvents', 'maxLength')
  queue.max_events = tonumber(stored[1]) or queue.max_events
  queue.max_length = tonumber(stored[2]) or 0
end

-- Fills in the state of a queue that has none. found: which of its keys there are, by name.
local function derive(queue, found)
  local base = queue.base
  local held = held_frames(base)
  place_cursor(queue, last_taken(base, held))
  local gone, holes = read_holes(base)
  local log = walk_log(queue, '-', gone, held)
  derive_numbers(queue, log)
  derive_settings(queue)
  queue.holes, queue.stale, queue.apart = holes, count_stale(base), log.apart
  queue.waiting = math.max(log.waiting - queue.stale, 0) + redis.call('LLEN', base .. 'front')
  queue.active = log.active + redis.call('HLEN', base .. 'active')
  for _, chars in pairs(held) do queue.active = queue.active + select(2, chars:gsub('1', '')) end
  queue.completed = count_completed(base)
  queue.place = found.jobs and last_place(base) or 0
  queue.flows = (found.vitals or found.parents or log.children) and 1 or 0
  local event_ms, event_seq = last_given(base, 'events')
  if event_ms > queue.event_ms or (event_ms == queue.event_ms and event_seq > queue.event_seq) then
    queue.event_ms, queue.event_seq = event_ms, event_seq
  end
end

return {
  derive = derive,
  count_waiting = count_waiting,
  count_completed = count_completed,
  each_run = each_run,
}
