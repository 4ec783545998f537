-- fetch: waiting | prioritized -> active, for one worker. Order: the front list, the log, then jobs with a priority.
-- It takes at most `want` jobs that start now, and `surplus` jobs that start a moment later. A frame that holds more than there is
-- room for is broken: its jobs become records, those that fit become active, the rest goes to the front list.
-- A job that stalled before is never surplus: what killed its worker must not take it along again.
local Allowed = require('allowed')
local Delayed = require('delayed')
local Events = require('events')
local Frame = require('frame')
local Line = require('line')
local Priority = require('priority')
local State = require('state')
local Strays = require('strays')

local PROMOTE_LIMIT = 1000

-- A step that has taken so many bytes takes no more, whatever was wanted: the worker comes again for the rest.
local MOST_BYTES = 1024 * 1024
-- Records of a step beyond which no surplus is taken.
local MOST_RECORDS = 1000
-- Records of unknown size that are read at once: 2 MiB, if all are as large as they may be; and when the first one is small.
local FIRST_RECORDS, FIRST_SMALL, SMALL = 8, 250, 4096

-- Of a queue: promoted, due jobs that head the line without having entered it, if there are any: ids; at: of them, those that were taken; more:
-- others are due.
-- Fewer due jobs than this are not worth the shorter way.
local MANY_DUE = 16

local function due_jobs(queue, now_ms)
  return redis.call('ZRANGEBYSCORE', queue.base .. 'delayed', '-inf', State.whole(now_ms * 4096 + 4095), 'LIMIT', 0, PROMOTE_LIMIT)
end

local function leave_delayed(queue, ids)
  if #ids == 0 then return end
  Allowed.require_commands(queue, { 'XADD', 'ZADD' })
  redis.call('ZREMRANGEBYRANK', queue.base .. 'delayed', 0, #ids - 1)
  Events.emit(queue, #ids, { 'X', 'waiting', ids, 'prev', 'delayed' })
end

-- delayed -> waiting | prioritized, for every job that is due.
local function promote_due(queue, now_ms)
  local ids = due_jobs(queue, now_ms)
  leave_delayed(queue, ids)
  Priority.enter_line(queue, ids)
end

-- The same on the way to a fetch of up to `room` jobs. Due jobs that head the line do not enter it; of very many, no more than these
-- leave the delayed ones. later_ms of the queue: when the next delayed job is due, if none was.
local function promote_due_for(queue, room, now_ms)
  local due_ms = Delayed.next_due(queue)
  queue.later_ms = due_ms and due_ms > now_ms and due_ms
  if not due_ms or queue.later_ms then return end
  local ids = due_jobs(queue, now_ms)
  if #ids < MANY_DUE or queue.waiting > 0 or queue.place > 0 or room == 0 then
    leave_delayed(queue, ids)
    Priority.enter_line(queue, ids)
    return
  end
  local more = #ids == PROMOTE_LIMIT and room < PROMOTE_LIMIT
  if more then
    for i = #ids, room + 1, -1 do ids[i] = nil end
  end
  Allowed.require_commands(queue, { 'HMGET', 'HSET', 'LPOP', 'SET' })
  leave_delayed(queue, ids)
  queue.promoted = { ids = ids, at = 0, more = more }
end

-- fetched, what is taken. items: first, n, blob of a frame, or -n, columns of n records (give_records); ids: first, n of a frame ({n, ids}
-- of one of children, lib/frame), or 0, ids of records; taken (jobs), records (of them, those with a record), doomed (of them, those that
-- were taken only to fail), bytes; rest: what was broken heads the line now.
-- active_entries: of records taken in one step, which differ in their count of starts only.
local function start(queue)
  queue.promoted, queue.later_ms = false, false
  queue.fetched = State.with_lists({ taken = 0, doomed = 0, bytes = 0, records = 0, rest = false })
end

local function active_entry(queue, started, step)
  local fetched = queue.fetched
  local entry = fetched.active_entries[started]
  if not entry then
    entry = cmsgpack.pack({ step.now_ms, started, step.owner, step.worker_name, step.claim })
    fetched.active_entries[started] = entry
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
local function vitals_taken(queue, ids, vitals, step)
  local fetched = queue.fetched
  local set, texts, starts, again = fetched.active_set, {}, {}, false
  local s = #set
  for at, id in ipairs(ids) do
    local raw, started = vitals[at], 1
    if raw then
      local ok, known = pcall(cmsgpack.unpack, raw)
      -- the worker fails a job that it cannot read (lib/stored)
      if not ok or type(known) ~= 'table' then known = { df = '' } end
      started = (tonumber(known.as) or 0) + 1
      if known.df then fetched.doomed = fetched.doomed + 1 end
      fetched.bytes = fetched.bytes + (tonumber(known.ld) or 0)
      again = again or started > 1
    end
    texts[at], starts[at] = raw or '', started
    set[s + 1], set[s + 2] = id, active_entry(queue, started, step)
    s = s + 2
  end
  return texts, again and starts or 0
end

-- Adds records to what is taken, in order: ids, and of each its body and its vitals (false = none).
local function add_records_taken(queue, ids, bodies, vitals, step)
  local fetched = queue.fetched
  local n, bytes, have_vitals = #ids, 0, false
  for at = 1, n do
    local body = bodies[at]
    if not body then
      local there, theirs, known = existing(ids, bodies, vitals)
      return add_records_taken(queue, there, theirs, known, step)
    end
    bytes = bytes + #body
    if vitals[at] then have_vitals = true end
  end
  if n == 0 then return end
  local texts, starts = 0, 0
  if have_vitals then
    texts, starts = vitals_taken(queue, ids, vitals, step)
  else
    local set, entry = fetched.active_set, active_entry(queue, 1, step)
    local s = #set
    for at = 1, n do
      set[s + 1], set[s + 2] = ids[at], entry
      s = s + 2
    end
  end
  Line.append(fetched.ids, 0, ids)
  give_records(fetched.items, ids, bodies, texts, starts)
  Events.emit(queue, n, { 'X', 'active', ids, 'prev', 'waiting' })
  fetched.taken = fetched.taken + n
  fetched.records = fetched.records + n
  fetched.bytes = fetched.bytes + bytes
end

-- References of removed jobs stay in the log; each is skipped once. The front list has none.
local function is_stale(queue, id)
  local count = tonumber(redis.call('HGET', queue.base .. 'gone', id) or 0) or 1
  if count == 0 then return false end
  if count == 1 then
    redis.call('HDEL', queue.base .. 'gone', id)
  else
    redis.call('HINCRBY', queue.base .. 'gone', id, -1)
  end
  queue.gone = queue.gone - 1
  return true
end

local function without_stale(queue, ids)
  if queue.gone == 0 then return ids end
  local valid = {}
  for _, id in ipairs(ids) do
    if not is_stale(queue, id) then valid[#valid + 1] = id end
  end
  return valid
end

local function take_records(queue, ids, step)
  if #ids == 0 then return end
  local vitals = redis.call('EXISTS', queue.base .. 'vitals') == 1 and redis.call('HMGET', queue.base .. 'vitals', unpack(ids)) or {}
  add_records_taken(queue, ids, redis.call('HMGET', queue.base .. 'jobs', unpack(ids)), vitals, step)
end

-- Records for which there is room, if they are like what was taken so far.
local function fitting_records(queue)
  local fetched = queue.fetched
  return math.floor((MOST_BYTES - fetched.bytes) * fetched.taken / math.max(fetched.bytes, 1))
end

-- Records that may be read at once, beginning with this one, if `wanted` are; 0 when there were enough.
local function records_chunk(queue, id, wanted)
  local fetched = queue.fetched
  if fetched.taken < FIRST_RECORDS then
    local is_small = wanted > FIRST_RECORDS and redis.call('HSTRLEN', queue.base .. 'jobs', id) <= SMALL
    return is_small and FIRST_SMALL or FIRST_RECORDS
  end
  if fetched.bytes >= MOST_BYTES then return 0 end
  return math.max(math.min(fitting_records(queue), 1000), 1)
end

-- Takes the first `most` records, or fewer whose bytes are enough. Gives how many of the ids it is done with.
local function take_records_within(queue, ids, most, step)
  local at = 0
  while at < most do
    local chunk = records_chunk(queue, ids[at + 1], most - at)
    if chunk == 0 then break end
    local to = math.min(at + chunk, most)
    take_records(queue, to - at == #ids and ids or { unpack(ids, at + 1, to) }, step)
    at = to
  end
  return at
end

local function has_stalled(vitals_raw)
  local ok, vitals = pcall(cmsgpack.unpack, vitals_raw or '\128')
  return ok and type(vitals) == 'table' and (tonumber(vitals.st) or 0) > 0
end

local function push_rest(queue, ids)
  queue.fetched.rest = #ids > 0
  for from = 1, #ids, 1000 do
    redis.call('RPUSH', queue.base .. 'front', unpack(ids, from, math.min(from + 999, #ids)))
  end
end

-- Breaks the frame at the head of the line; `room` of its jobs become active.
local function break_frame(queue, first, n, blob, room, step)
  local chars = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first))
  if chars then
    redis.call('HDEL', queue.base .. 'holes', State.whole(first))
    queue.holes = queue.holes - 1
  end
  local body_of, brood = Frame.frame_bodies(blob), Frame.brood_of(blob)
  local set, ids, bodies, rest, vitals_set = {}, {}, {}, {}, {}
  for i = 0, n - 1 do
    local char = chars and chars:sub(i + 1, i + 1) or '1'
    local id = Frame.id_in(brood and brood[1], first + i)
    if char ~= '0' then
      if char == '1' then
        local body = body_of(i)
        set[#set + 1] = id
        set[#set + 1] = body
        if brood then Line.append(vitals_set, id, cmsgpack.pack({ pa = Frame.parent_in(brood, first, i) })) end
        if room > 0 then bodies[#ids + 1] = body end
      elseif room > 0 then
        bodies[#ids + 1] = redis.call('HGET', queue.base .. 'jobs', id)
      end
      if room > 0 then
        room = room - 1
        ids[#ids + 1] = id
      else
        rest[#rest + 1] = id
      end
    end
  end
  if #set > 0 then redis.call('HSET', queue.base .. 'jobs', unpack(set)) end
  if #vitals_set > 0 then redis.call('HSET', queue.base .. 'vitals', unpack(vitals_set)) end
  if #ids > 0 then
    queue.waiting = queue.waiting - #ids
    local vitals = (chars or brood) and redis.call('HMGET', queue.base .. 'vitals', unpack(ids)) or {}
    add_records_taken(queue, ids, bodies, vitals, step)
  end
  push_rest(queue, rest)
  redis.call('XDEL', queue.base .. 'log', State.entry_id(first, n))
end

-- Records that are taken at once beyond those that start now: more, once they are known to be small.
local function surplus_chunk(queue)
  local fetched = queue.fetched
  if fetched.records >= MOST_RECORDS or fetched.bytes >= MOST_BYTES then return 0 end
  if fetched.taken < FIRST_RECORDS then return FIRST_RECORDS end
  return math.max(math.min(fitting_records(queue), fetched.taken >= 64 and 256 or 64), 1)
end

-- The line is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_prioritized(queue, want, most, step)
  local fetched = queue.fetched
  while fetched.taken < most do
    local room = fetched.taken < want and want - fetched.taken or fetched.bytes < step.max_bytes and most - fetched.taken or 0
    local first = room > 0 and redis.call('ZRANGE', queue.base .. 'prioritized', 0, 0)[1]
    if not first then
      if room > 0 then queue.place = Priority.FIRST_PLACE end
      return
    end
    local count = math.min(room, fetched.taken < want and records_chunk(queue, first, room) or surplus_chunk(queue))
    if count == 0 then return end
    -- cheaper than ZPOPMIN, which gives scores that nobody needs
    local ids = redis.call('ZRANGE', queue.base .. 'prioritized', 0, count - 1)
    redis.call('ZREMRANGEBYRANK', queue.base .. 'prioritized', 0, count - 1)
    take_records(queue, ids, step)
    if #ids < count then
      queue.place = Priority.FIRST_PLACE
      return
    end
  end
end

local function take_front(queue, want, most, step)
  if queue.waiting == 0 then return end
  local fetched = queue.fetched
  while fetched.taken < want do
    local chunk = fetched.taken < FIRST_RECORDS and FIRST_RECORDS or records_chunk(queue)
    if chunk == 0 then break end
    local ids = redis.call('LPOP', queue.base .. 'front', math.min(want - fetched.taken, chunk))
    if not ids then return end
    -- what another program wrote there is no job, and was not counted
    local before = fetched.taken
    take_records(queue, ids, step)
    queue.waiting = queue.waiting - (fetched.taken - before)
  end
  while fetched.taken < most do
    local chunk = fetched.taken < FIRST_RECORDS and FIRST_RECORDS or surplus_chunk(queue)
    if chunk == 0 then break end
    local ids = redis.call('LRANGE', queue.base .. 'front', 0, math.min(most - fetched.taken, chunk) - 1)
    if #ids == 0 then return end
    local fit = #ids
    for i, vitals_raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(ids))) do
      if has_stalled(vitals_raw) then
        fit = i - 1
        fetched.rest = true
        break
      end
    end
    if fit == 0 then return end
    redis.call('LPOP', queue.base .. 'front', fit)
    local before = fetched.taken
    take_records(queue, { unpack(ids, 1, fit) }, step)
    queue.waiting = queue.waiting - (fetched.taken - before)
    if fetched.rest then return end
  end
  -- of interest to what goes on with the log
  if fetched.taken < most then fetched.rest = redis.call('EXISTS', queue.base .. 'front') == 1 end
end

-- Takes one log entry, or what there is room for. step.max_bytes bounds what is taken beyond the jobs that start now.
local function take_entry(queue, entry, want, most, step)
  local fetched = queue.fetched
  local room = fetched.bytes < step.max_bytes and most - fetched.taken or want - fetched.taken
  if room <= 0 or fetched.bytes >= MOST_BYTES then return false end
  local field, blob = entry[2][1], entry[2][2]
  local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if field == 'f' and seq >= 1 and seq <= 64 then
    -- a surplus is not worth the records of a broken frame
    if seq > room and fetched.taken >= want then return false end
    if seq > room or (queue.holes > 0 and redis.call('HEXISTS', queue.base .. 'holes', State.whole(ms)) == 1) then
      break_frame(queue, ms, seq, blob, room, step)
    else
      local brood = Frame.brood_of(blob)
      Events.emit(queue, seq, { 'a', ms, seq, brood and brood[1] })
      local items, ids, set = fetched.items, fetched.ids, fetched.takes_set
      items[#items + 1], items[#items + 2], items[#items + 3] = ms, seq, blob
      ids[#ids + 1], ids[#ids + 2] = ms, brood and { seq, brood[1] } or seq
      set[#set + 1], set[#set + 2] = State.whole(ms), cmsgpack.pack({ step.now_ms, '', step.owner, step.worker_name, step.claim, brood })
      fetched.taken = fetched.taken + seq
      fetched.bytes = fetched.bytes + #blob
      queue.waiting = queue.waiting - seq
    end
  elseif field == 'r' and seq > Line.REFERENCE_SEQ then
    local ok, ids = pcall(cmsgpack.unpack, blob)
    local sound = ok and type(ids) == 'table' and #ids > 0
    for i = 1, sound and #ids or 0 do sound = sound and type(ids[i]) == 'string' end
    if not sound then
      ids = Strays.readable_ids(blob)
      ids[#ids + 1] = Strays.set_aside(queue, entry)
      queue.waiting = queue.waiting + 1
    end
    ids = without_stale(queue, ids)
    local done = take_records_within(queue, ids, math.min(#ids, room), step)
    queue.waiting = queue.waiting - done
    if done < #ids then push_rest(queue, { unpack(ids, done + 1) }) end
    redis.call('XDEL', queue.base .. 'log', entry[1])
  else
    take_records(queue, { Strays.set_aside(queue, entry) }, step)
    return true
  end
  queue.cursor_ms, queue.cursor_seq = ms, seq
  return true
end

local function take_log(queue, want, most, step)
  local fetched = queue.fetched
  while queue.waiting > 0 and fetched.taken < most and not fetched.rest do
    -- eight entries have 2 MiB at most
    local count = math.max(math.min(math.ceil((most - fetched.taken) / 64), 8), 1)
    local entries = redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), '+', 'COUNT', count)
    if #entries == 0 then
      -- a call was refused half-way (lib/events): nothing waits
      queue.waiting = 0
      return
    end
    for _, entry in ipairs(entries) do
      if fetched.taken >= most or fetched.rest or not take_entry(queue, entry, want, most, step) then return end
    end
  end
end

-- The line is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_due(queue, want, most, step)
  local fetched = queue.fetched
  local promoted = queue.promoted
  if not promoted then return end
  local ids = promoted.ids
  while promoted.at < #ids and fetched.taken < most do
    local room = fetched.taken < want and math.min(want - fetched.taken, records_chunk(queue, ids[promoted.at + 1], want - fetched.taken))
      or fetched.bytes < step.max_bytes and math.min(most - fetched.taken, surplus_chunk(queue)) or 0
    if room == 0 then return end
    local to = math.min(promoted.at + room, #ids)
    take_records(queue, { unpack(ids, promoted.at + 1, to) }, step)
    promoted.at = to
  end
end

-- Due jobs that were not taken wait.
local function enter_due(queue)
  local promoted = queue.promoted
  if promoted and promoted.at < #promoted.ids then Priority.enter_line(queue, { unpack(promoted.ids, promoted.at + 1) }) end
end

-- Takes up to `want` jobs, and `surplus` more where that breaks nothing.
local function fetch(queue, want, surplus, step)
  local fetched = queue.fetched
  take_due(queue, want, want + surplus, step)
  take_front(queue, want, want + surplus, step)
  take_log(queue, want, want + surplus, step)
  if queue.waiting == 0 and queue.place > 0 then take_prioritized(queue, want, want + surplus, step) end
  queue.active = queue.active + fetched.taken
  if rawget(fetched, 'takes_set') then Line.call_in_chunks('HSET', queue.base .. 'takes', fetched.takes_set) end
  if rawget(fetched, 'active_set') then Line.call_in_chunks('HSET', queue.base .. 'active', fetched.active_set) end
end

return {
  start = start,
  promote_due = promote_due,
  promote_due_for = promote_due_for,
  give_records = give_records,
  enter_due = enter_due,
  fetch = fetch,
}
