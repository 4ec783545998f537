-- fetch: waiting | prioritized -> active, for one worker. Order: the front list, the log, then jobs with a priority.
-- It takes at most `want` jobs that start now, and `surplus` jobs that start a moment later. A frame that holds more than there is
-- room for is broken: its jobs become records, those that fit become active, the rest goes to the front list.
-- A job that stalled before is never surplus: what killed its worker must not take it along again.
local PROMOTE_LIMIT = 1000

-- A step that has taken so many bytes takes no more, whatever was wanted: the worker comes again for the rest.
local MOST_BYTES = 1024 * 1024
-- Records of a step beyond which no surplus is taken.
local MOST_RECORDS = 1000
-- Records of unknown size that are read at once: 2 MiB, if all are as large as they may be; and when the first one is small.
local FIRST_RECORDS, FIRST_SMALL, SMALL = 8, 250, 4096

-- @include lib/allowed

-- D: due jobs that have left the delayed ones and are not in line; at: of them, those that were taken; more: others are due.
local D = { ids = {}, at = 0, more = false }
-- Fewer due jobs than this are not worth the shorter way.
local MANY_DUE = 16

local function due_jobs(now_ms)
  return redis.call('ZRANGEBYSCORE', base .. 'delayed', '-inf', whole(now_ms * 4096 + 4095), 'LIMIT', 0, PROMOTE_LIMIT)
end

local function leave_delayed(ids)
  if #ids == 0 then return end
  require_commands({ 'XADD', 'ZADD' })
  redis.call('ZREMRANGEBYRANK', base .. 'delayed', 0, #ids - 1)
  emit(#ids, { 'X', 'waiting', ids, 'prev', 'delayed' })
end

-- @cold
-- delayed -> waiting | prioritized, for every job that is due.
local function promote_due(now_ms)
  local ids = due_jobs(now_ms)
  leave_delayed(ids)
  enter_line(ids)
end
-- @warm

-- The same on the way to a fetch of up to `room` jobs. Due jobs that head the line do not enter it; of very many, no more than these
-- leave the delayed ones.
local function promote_due_for(room, now_ms)
  local ids = due_jobs(now_ms)
  if #ids < MANY_DUE or S.waiting > 0 or S.place > 0 or room == 0 then
    leave_delayed(ids)
    enter_line(ids)
    return
  end
  if #ids == PROMOTE_LIMIT and room < PROMOTE_LIMIT then
    D.more = true
    for i = #ids, room + 1, -1 do ids[i] = nil end
  end
  require_commands({ 'HMGET', 'HSET', 'LPOP', 'SET' })
  leave_delayed(ids)
  D.ids = ids
end

-- R collects what is taken. items: first, n, blob of a frame, or -n, columns of n records (give_records); ids: first, n of a frame ({n, ids}
-- of one of children, lib/frame), or 0, ids of records; taken (jobs), records (of them, those with a record), doomed (of them, those that
-- were taken only to fail), bytes; rest: what was broken heads the line now.
local R = { items = {}, ids = {}, taken = 0, doomed = 0, bytes = 0, records = 0, takes_set = {}, active_set = {}, rest = false }

-- Active entries of records taken in one step differ in their count of starts only.
local active_entries = {}

-- @cold
local function active_entry(started, W)
  local entry = active_entries[started]
  if not entry then
    entry = cmsgpack.pack({ W.now_ms, started, W.owner, W.worker_name, W.claim })
    active_entries[started] = entry
  end
  return entry
end

-- Tells records in columns, which costs less than a value for each: {ids, bodies, vitals ('' = none; 0 = none of them has any), counts
-- of starts (0 = all are the first)}.
local function give_records(items, ids, bodies, vitals, starts)
  local n = #items
  items[n + 1], items[n + 2] = -#ids, cmsgpack.pack({ ids, bodies, vitals, starts })
end

-- Records that are still there: ids, and of each its body and its vitals.
local function existing(ids, bodies, vitals)
  local there, theirs, known = {}, {}, {}
  for at, id in ipairs(ids) do
    local n = #there
    if bodies[at] then there[n + 1], theirs[n + 1], known[n + 1] = id, bodies[at], vitals[at] or false end
  end
  return there, theirs, known
end

-- Tells what vitals say: them ('' = none) and the counts of starts, in columns, for give_records.
local function vitals_taken(ids, vitals, W)
  local set, texts, starts, again = R.active_set, {}, {}, false
  local s = #set
  for at, id in ipairs(ids) do
    local raw, started = vitals[at], 1
    if raw then
      local ok, known = pcall(cmsgpack.unpack, raw)
      -- the worker fails a job that it cannot read (lib/stored)
      if not ok or type(known) ~= 'table' then known = { df = '' } end
      started = (tonumber(known.as) or 0) + 1
      if known.df then R.doomed = R.doomed + 1 end
      R.bytes = R.bytes + (tonumber(known.ld) or 0)
      again = again or started > 1
    end
    texts[at], starts[at] = raw or '', started
    set[s + 1], set[s + 2] = id, active_entry(started, W)
    s = s + 2
  end
  return texts, again and starts or 0
end

-- Adds records to what is taken, in order: ids, and of each its body and its vitals (false = none).
local function add_records_taken(ids, bodies, vitals, W)
  local n, bytes, have_vitals = #ids, 0, false
  for at = 1, n do
    local body = bodies[at]
    if not body then
      local there, theirs, known = existing(ids, bodies, vitals)
      return add_records_taken(there, theirs, known, W)
    end
    bytes = bytes + #body
    if vitals[at] then have_vitals = true end
  end
  if n == 0 then return end
  local texts, starts = 0, 0
  if have_vitals then
    texts, starts = vitals_taken(ids, vitals, W)
  else
    local set, entry = R.active_set, active_entry(1, W)
    local s = #set
    for at = 1, n do
      set[s + 1], set[s + 2] = ids[at], entry
      s = s + 2
    end
  end
  append(R.ids, 0, ids)
  give_records(R.items, ids, bodies, texts, starts)
  emit(n, { 'X', 'active', ids, 'prev', 'waiting' })
  R.taken = R.taken + n
  R.records = R.records + n
  R.bytes = R.bytes + bytes
end

-- References of removed jobs stay in the log; each is skipped once. The front list has none.
local function is_stale(id)
  local count = tonumber(redis.call('HGET', base .. 'gone', id) or 0) or 1
  if count == 0 then return false end
  if count == 1 then
    redis.call('HDEL', base .. 'gone', id)
  else
    redis.call('HINCRBY', base .. 'gone', id, -1)
  end
  S.gone = S.gone - 1
  return true
end

local function without_stale(ids)
  if S.gone == 0 then return ids end
  local valid = {}
  for _, id in ipairs(ids) do
    if not is_stale(id) then valid[#valid + 1] = id end
  end
  return valid
end

local function take_records(ids, W)
  if #ids == 0 then return end
  local vitals = redis.call('EXISTS', base .. 'vitals') == 1 and redis.call('HMGET', base .. 'vitals', unpack(ids)) or {}
  add_records_taken(ids, redis.call('HMGET', base .. 'jobs', unpack(ids)), vitals, W)
end

-- Records for which there is room, if they are like what was taken so far.
local function fitting_records()
  return math.floor((MOST_BYTES - R.bytes) * R.taken / math.max(R.bytes, 1))
end

-- Records that may be read at once, beginning with this one, if `wanted` are; 0 when there were enough.
local function records_chunk(id, wanted)
  if R.taken < FIRST_RECORDS then
    local is_small = wanted > FIRST_RECORDS and redis.call('HSTRLEN', base .. 'jobs', id) <= SMALL
    return is_small and FIRST_SMALL or FIRST_RECORDS
  end
  if R.bytes >= MOST_BYTES then return 0 end
  return math.max(math.min(fitting_records(), 1000), 1)
end

-- Takes the first `most` records, or fewer whose bytes are enough. Gives how many of the ids it is done with.
local function take_records_within(ids, most, W)
  local at = 0
  while at < most do
    local chunk = records_chunk(ids[at + 1], most - at)
    if chunk == 0 then break end
    local to = math.min(at + chunk, most)
    take_records(to - at == #ids and ids or { unpack(ids, at + 1, to) }, W)
    at = to
  end
  return at
end

local function has_stalled(vitals_raw)
  local ok, vitals = pcall(cmsgpack.unpack, vitals_raw or '\128')
  return ok and type(vitals) == 'table' and (tonumber(vitals.st) or 0) > 0
end

local function push_rest(ids)
  R.rest = #ids > 0
  for from = 1, #ids, 1000 do
    redis.call('RPUSH', base .. 'front', unpack(ids, from, math.min(from + 999, #ids)))
  end
end

-- Breaks the frame at the head of the line; `room` of its jobs become active.
local function break_frame(first, n, blob, room, W)
  local chars = S.holes > 0 and redis.call('HGET', base .. 'holes', whole(first))
  if chars then
    redis.call('HDEL', base .. 'holes', whole(first))
    S.holes = S.holes - 1
  end
  local body_of, brood = frame_bodies(blob), brood_of(blob)
  local set, ids, bodies, rest, vitals_set = {}, {}, {}, {}, {}
  for i = 0, n - 1 do
    local char = chars and chars:sub(i + 1, i + 1) or '1'
    local id = id_in(brood and brood[1], first + i)
    if char ~= '0' then
      if char == '1' then
        local body = body_of(i)
        set[#set + 1] = id
        set[#set + 1] = body
        if brood then append(vitals_set, id, cmsgpack.pack({ pa = parent_in(brood, first, i) })) end
        if room > 0 then bodies[#ids + 1] = body end
      elseif room > 0 then
        bodies[#ids + 1] = redis.call('HGET', base .. 'jobs', id)
      end
      if room > 0 then
        room = room - 1
        ids[#ids + 1] = id
      else
        rest[#rest + 1] = id
      end
    end
  end
  if #set > 0 then redis.call('HSET', base .. 'jobs', unpack(set)) end
  if #vitals_set > 0 then redis.call('HSET', base .. 'vitals', unpack(vitals_set)) end
  if #ids > 0 then
    S.waiting = S.waiting - #ids
    local vitals = (chars or brood) and redis.call('HMGET', base .. 'vitals', unpack(ids)) or {}
    add_records_taken(ids, bodies, vitals, W)
  end
  push_rest(rest)
  redis.call('XDEL', base .. 'log', entry_id(first, n))
end

-- Records that are taken at once beyond those that start now: more, once they are known to be small.
local function surplus_chunk()
  if R.records >= MOST_RECORDS or R.bytes >= MOST_BYTES then return 0 end
  if R.taken < FIRST_RECORDS then return FIRST_RECORDS end
  return math.max(math.min(fitting_records(), R.taken >= 64 and 256 or 64), 1)
end

-- The line is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_prioritized(want, most, W)
  while R.taken < most do
    local room = R.taken < want and want - R.taken or R.bytes < W.max_bytes and most - R.taken or 0
    local first = room > 0 and redis.call('ZRANGE', base .. 'prioritized', 0, 0)[1]
    if not first then
      if room > 0 then S.place = FIRST_PLACE end
      return
    end
    local count = math.min(room, R.taken < want and records_chunk(first, room) or surplus_chunk())
    if count == 0 then return end
    -- cheaper than ZPOPMIN, which gives scores that nobody needs
    local ids = redis.call('ZRANGE', base .. 'prioritized', 0, count - 1)
    redis.call('ZREMRANGEBYRANK', base .. 'prioritized', 0, count - 1)
    take_records(ids, W)
    if #ids < count then
      S.place = FIRST_PLACE
      return
    end
  end
end
-- @warm

local function take_front(want, most, W)
  while R.taken < want do
    local chunk = R.taken < FIRST_RECORDS and FIRST_RECORDS or records_chunk()
    if chunk == 0 then break end
    local ids = redis.call('LPOP', base .. 'front', math.min(want - R.taken, chunk))
    if not ids then return end
    -- what another program wrote there is no job, and was not counted
    local before = R.taken
    take_records(ids, W)
    S.waiting = S.waiting - (R.taken - before)
  end
  while R.taken < most do
    local chunk = R.taken < FIRST_RECORDS and FIRST_RECORDS or surplus_chunk()
    if chunk == 0 then break end
    local ids = redis.call('LRANGE', base .. 'front', 0, math.min(most - R.taken, chunk) - 1)
    if #ids == 0 then return end
    local fit = #ids
    for i, vitals_raw in ipairs(redis.call('HMGET', base .. 'vitals', unpack(ids))) do
      if has_stalled(vitals_raw) then
        fit = i - 1
        R.rest = true
        break
      end
    end
    if fit == 0 then return end
    redis.call('LPOP', base .. 'front', fit)
    local before = R.taken
    take_records({ unpack(ids, 1, fit) }, W)
    S.waiting = S.waiting - (R.taken - before)
    if R.rest then return end
  end
  R.rest = redis.call('EXISTS', base .. 'front') == 1
end

-- Takes one log entry, or what there is room for. W.max_bytes bounds what is taken beyond the jobs that start now.
local function take_entry(entry, want, most, W)
  local room = R.bytes < W.max_bytes and most - R.taken or want - R.taken
  if room <= 0 or R.bytes >= MOST_BYTES then return false end
  local field, blob = entry[2][1], entry[2][2]
  local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if field == 'f' and seq >= 1 and seq <= 64 then
    -- a surplus is not worth the records of a broken frame
    if seq > room and R.taken >= want then return false end
    if seq > room or (S.holes > 0 and redis.call('HEXISTS', base .. 'holes', whole(ms)) == 1) then
      break_frame(ms, seq, blob, room, W)
    else
      local brood = brood_of(blob)
      emit(seq, { 'a', ms, seq, brood and brood[1] })
      local items, ids, set = R.items, R.ids, R.takes_set
      items[#items + 1], items[#items + 2], items[#items + 3] = ms, seq, blob
      ids[#ids + 1], ids[#ids + 2] = ms, brood and { seq, brood[1] } or seq
      set[#set + 1], set[#set + 2] = whole(ms), cmsgpack.pack({ W.now_ms, '', W.owner, W.worker_name, W.claim, brood })
      R.taken = R.taken + seq
      R.bytes = R.bytes + #blob
      S.waiting = S.waiting - seq
    end
  elseif field == 'r' and seq > REFERENCE_SEQ then
    local ok, ids = pcall(cmsgpack.unpack, blob)
    local sound = ok and type(ids) == 'table' and #ids > 0
    for i = 1, sound and #ids or 0 do sound = sound and type(ids[i]) == 'string' end
    if not sound then
-- @include lib/strays
      ids = readable_ids(blob)
      ids[#ids + 1] = set_aside(entry)
      S.waiting = S.waiting + 1
    end
    ids = without_stale(ids)
    local done = take_records_within(ids, math.min(#ids, room), W)
    S.waiting = S.waiting - done
    if done < #ids then push_rest({ unpack(ids, done + 1) }) end
    redis.call('XDEL', base .. 'log', entry[1])
  else
-- @include lib/strays
    take_records({ set_aside(entry) }, W)
    return true
  end
  S.cursor_ms, S.cursor_seq = ms, seq
  return true
end

local function take_log(want, most, W)
  while S.waiting > 0 and R.taken < most and not R.rest do
    -- eight entries have 2 MiB at most
    local count = math.max(math.min(math.ceil((most - R.taken) / 64), 8), 1)
    local entries = redis.call('XRANGE', base .. 'log', '(' .. entry_id(S.cursor_ms, S.cursor_seq), '+', 'COUNT', count)
    if #entries == 0 then
      -- a call was refused half-way (lib/events): nothing waits
      S.waiting = 0
      return
    end
    for _, entry in ipairs(entries) do
      if R.taken >= most or R.rest or not take_entry(entry, want, most, W) then return end
    end
  end
end

-- The line is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_due(want, most, W)
  local ids = D.ids
  while D.at < #ids and R.taken < most do
    local room = R.taken < want and math.min(want - R.taken, records_chunk(ids[D.at + 1], want - R.taken))
      or R.bytes < W.max_bytes and math.min(most - R.taken, surplus_chunk()) or 0
    if room == 0 then return end
    local to = math.min(D.at + room, #ids)
    take_records({ unpack(ids, D.at + 1, to) }, W)
    D.at = to
  end
end

-- Due jobs that were not taken wait.
local function enter_due()
  if D.at < #D.ids then enter_line({ unpack(D.ids, D.at + 1) }) end
end

-- Takes up to `want` jobs, and `surplus` more where that breaks nothing.
local function fetch(want, surplus, W)
  take_due(want, want + surplus, W)
  take_front(want, want + surplus, W)
  take_log(want, want + surplus, W)
  if S.waiting == 0 and S.place > 0 then take_prioritized(want, want + surplus, W) end
  S.active = S.active + R.taken
  call_in_chunks('HSET', base .. 'takes', R.takes_set)
  call_in_chunks('HSET', base .. 'active', R.active_set)
end
