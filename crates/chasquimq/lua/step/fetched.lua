-- fetched: what a step takes of the jobs that wait, and how much at once: records are read in portions, as their size is not known before.
local Delayed = require('delayed')
local Events = require('events')
local Expiry = require('expiry')
local GroupOrder = require('group_order')
local Holder = require('holder')
local KeyLimits = require('key_limits')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- A step that has taken so many bytes takes no more, whatever was wanted: the worker comes again for the rest.
local MOST_BYTES = 1024 * 1024
-- The same of records: each costs many times what a job of a frame does.
local MOST_RECORDS = 400
-- Records of unknown size that are read at once: 2 MiB, if all are as large as they may be; and when the first one is small.
local FIRST_RECORDS, FIRST_SMALL, SMALL = 8, 250, 4096
-- A small hash is a list to the server, which is walked for each of its fields, unless a value is longer than 64 bytes. So where more jobs than
-- this are active, or become it, active entries have a value more, which nobody reads.
-- Why: of 300 delayed jobs that are taken and end together each costs 51,000 instructions of the server's, 89,000 without.
local FEW_ACTIVE, NO_LIST = 32, '                        '

-- Stack traces are long and much alike, which Lua's strings bear badly: where a step takes more records than this, the worker reads those of the rest.
local FEW_TRACES = 8

-- Bytes of a body from which on bodies are told one by one: to put them into a column Lua looks at each of their bytes.
local LONG_BODY = 1024

-- fetched, what is taken. items: first, n, blob of a frame, or -n, columns of n records, and their bodies where these are long (give_records);
-- ids: first, n of a frame ({n, ids} of one of children, jobs/frame), or 0, ids of records; taken (jobs), records (of them, those with a record),
-- doomed (of them, those that were taken only to fail), bytes; rest: what was broken heads the waiting list now.
-- put_off: jobs that were not taken, as a key of theirs has no room (rules/key_limits), by `later` their due times (epoch ms of the caller), keys: how many keys were
-- looked at for those and for what is taken.
-- active_entries: of records taken in one step, which differ in their count of starts, and their group, only. group_of: the groups of records that are taken
-- out of groups (step/turns), by id.
local function start(queue)
  queue.promoted, queue.later_ms = false, false
  queue.fetched = State.with_lists({ taken = 0, doomed = 0, bytes = 0, records = 0, put_off = 0, keys = 0, rest = false, many = false, group_of = false })
end

local function active_entry(queue, started, step, group)
  local entries = queue.fetched.active_entries
  local entry = entries[started]
  if not entry then
    entry = Holder.entry(step, started == 1 and Holder.RECORD or cmsgpack.pack(started), queue.fetched.many and NO_LIST)
    entries[started] = entry
  end
  return group and Holder.of_group(entry, group) or entry
end

-- Tells records in columns, which costs less than a value for each: {ids, bodies (0 = the first is long, and they follow one by one), fields
-- ('' = none; 0 = none of them has any), counts of starts (0 = all are the first), 1 if their stack traces follow one by one}.
local function give_records(items, ids, bodies, fields, starts, traces)
  local n, are_long = #items, #bodies[1] >= LONG_BODY
  items[n + 1], items[n + 2] = -#ids, cmsgpack.pack({ ids, are_long and 0 or bodies, fields, starts, traces and 1 or nil })
  for at = 1, are_long and #ids or 0 do items[n + 2 + at] = bodies[at] end
  for at = 1, traces and #ids or 0 do items[#items + 1] = traces[at] or '' end
end

-- Records that are still there: ids, and of each its body and its state fields.
local function existing(ids, bodies, fields)
  local there, theirs, known = {}, {}, {}
  for at, id in ipairs(ids) do
    local n = #there
    if bodies[at] then there[n + 1], theirs[n + 1], known[n + 1] = id, bodies[at], fields[at] or false end
  end
  return there, theirs, known
end

-- A job starts for the first time that expires, or owns its deduplication id until then. Gives its state fields as they are now, packed; one that comes
-- too late is to fail.
local function start_first(queue, id, known, raw)
  local key = known.du and type(known.di) == 'string' and queue.base .. 'de:' .. known.di
  if key and redis.call('GET', key) == id then redis.call('DEL', key) end
  if not known.ex then return raw end
  queue.fetched.expiring[#queue.fetched.expiring + 1] = id
  if not Expiry.is_due(queue, known) then return raw end
  known.df = known.df or Expiry.REASON
  raw = cmsgpack.pack(known)
  redis.call('HSET', queue.base .. 'vitals', id, raw)
  return raw
end

-- Tells what state fields say: them ('' = none) and the counts of starts, in columns, and stack traces, for give_records.
local function fields_taken(queue, ids, fields, step)
  local fetched = queue.fetched
  local set, texts, starts, again, failed = fetched.active_set, {}, {}, false, false
  local s, last_raw, known = #set, nil, nil
  for at, id in ipairs(ids) do
    local raw, started = fields[at], 1
    if raw then
      -- those of jobs that failed alike are equal
      if raw ~= last_raw then
        local ok, read = pcall(cmsgpack.unpack, raw)
        -- the worker fails a job that it cannot read (jobs/stored)
        last_raw, known = raw, ok and type(read) == 'table' and read or { df = '' }
      end
      started = (tonumber(known.as) or 0) + 1
      if started == 1 and (known.ex or known.du) then raw = start_first(queue, id, known, raw) end
      if known.df then fetched.doomed = fetched.doomed + 1 end
      fetched.bytes = fetched.bytes + (tonumber(known.ld) or 0)
      again, failed = again or started > 1, failed or Stored.has_traces(known)
    end
    texts[at], starts[at] = raw or '', started
    set[s + 1], set[s + 2] = id, active_entry(queue, started, step, fetched.group_of and fetched.group_of[id])
    s = s + 2
  end
  return texts, again and starts or 0, failed and fetched.records + #ids <= FEW_TRACES and redis.call('HMGET', queue.base .. 'traces', unpack(ids))
end

-- Adds records to what is taken, in order: ids, and of each its body and its state fields (false = none).
local function add_records(queue, ids, bodies, fields, step)
  local fetched = queue.fetched
  local n, bytes, have_fields = #ids, 0, false
  for at = 1, n do
    local body = bodies[at]
    if not body then
      local there, theirs, known = existing(ids, bodies, fields)
      return add_records(queue, there, theirs, known, step)
    end
    bytes = bytes + #body
    if fields[at] then have_fields = true end
  end
  if n == 0 then return end
  -- entries of one step are equal
  if fetched.records == 0 then fetched.many = n > FEW_ACTIVE or queue.active > FEW_ACTIVE end
  local texts, starts, traces = 0, 0, false
  if have_fields then
    texts, starts, traces = fields_taken(queue, ids, fields, step)
  else
    local set, group_of, entry = fetched.active_set, fetched.group_of, nil
    local s = #set
    for at = 1, n do
      if group_of or not entry then entry = active_entry(queue, 1, step, group_of and group_of[ids[at]]) end
      set[s + 1], set[s + 2] = ids[at], entry
      s = s + 2
    end
  end
  WaitingList.append(fetched.ids, 0, ids)
  give_records(fetched.items, ids, bodies, texts, starts, traces)
  Events.emit(queue, n, { 'X', 'active', ids, 'prev', 'waiting' })
  fetched.taken = fetched.taken + n
  fetched.records = fetched.records + n
  fetched.bytes = fetched.bytes + bytes
end

-- A job is delayed until there may be room in its keys (ms of the server).
local function put_off(queue, id, body, known, due_ms, step)
  local fetched = queue.fetched
  due_ms = due_ms + step.now_ms - Expiry.server_ms(queue)
  -- what users see as its delay
  known.d = math.max(due_ms - (known.po or Stored.timestamp(body, 1)), 0)
  fetched.put_off = fetched.put_off + 1
  fetched.later[id] = due_ms
  WaitingList.append(fetched.later_ids, id)
  if (known.as or 0) > 0 and fetched.group_of then GroupOrder.hold(queue, fetched.group_of[id], id) end
  Events.emit_job(queue, 'delayed', id, nil, 'delay', State.whole(due_ms))
end

-- Of records that are about to start, those use their keys that have limits, and are to run. One that finds no room is put off: its body is false then.
local function use_keys(queue, ids, bodies, fields, step)
  for at, id in ipairs(ids) do
    local raw = bodies[at] and fields[at]
    local known = raw and raw:find('\162kl', 1, true) and Stored.fields(raw)
    if known and known.kl and not known.df and not Expiry.is_due(queue, known) then
      queue.fetched.keys = queue.fetched.keys + #known.kl
      local due_ms = KeyLimits.start(queue, id, known)
      if due_ms then
        put_off(queue, id, bodies[at], known, due_ms, step)
        bodies[at] = false
      end
      fields[at] = cmsgpack.pack(known)
      WaitingList.append(queue.fetched.fields_set, id, fields[at])
    end
  end
end

local function take_records(queue, ids, step)
  if #ids == 0 then return end
  local fields = redis.call('EXISTS', queue.base .. 'vitals') == 1 and redis.call('HMGET', queue.base .. 'vitals', unpack(ids)) or {}
  local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(ids))
  if #fields > 0 then use_keys(queue, ids, bodies, fields, step) end
  add_records(queue, ids, bodies, fields, step)
end

-- What was put off is delayed, and what was used of keys is noted.
local function settle_keys(queue)
  local fetched = queue.fetched
  if fetched.keys == 0 then return end
  KeyLimits.save(queue)
  if rawget(fetched, 'fields_set') then WaitingList.call_in_chunks('HSET', queue.base .. 'vitals', fetched.fields_set) end
  if fetched.put_off == 0 then return end
  local dues = {}
  for i, id in ipairs(fetched.later_ids) do dues[i] = fetched.later[id] end
  Delayed.delay_jobs(queue, fetched.later_ids, dues)
  -- it may be sooner than was known
  queue.later_ms = false
end

local function is_full(fetched)
  return fetched.bytes >= MOST_BYTES or fetched.records >= MOST_RECORDS or fetched.keys >= MOST_RECORDS
end

-- Records for which there is room, if they are like what was taken so far.
local function fitting_records(fetched)
  local fit = math.floor((MOST_BYTES - fetched.bytes) * fetched.taken / math.max(fetched.bytes, 1))
  return math.min(fit, MOST_RECORDS - fetched.records)
end

-- Records that may be read at once, beginning with this one, if `wanted` are; 0 when there were enough.
local function records_chunk(queue, id, wanted)
  local fetched = queue.fetched
  if is_full(fetched) then return 0 end
  if fetched.taken < FIRST_RECORDS then
    local is_small = id and wanted > FIRST_RECORDS and redis.call('HSTRLEN', queue.base .. 'jobs', id) <= SMALL
    return is_small and FIRST_SMALL or FIRST_RECORDS
  end
  return math.max(fitting_records(fetched), 1)
end

-- Records that are taken at once beyond those that start now: more, once they are known to be small.
local function surplus_chunk(queue)
  local fetched = queue.fetched
  if is_full(fetched) then return 0 end
  if fetched.taken < FIRST_RECORDS then return FIRST_RECORDS end
  return math.max(math.min(fitting_records(fetched), fetched.taken >= 64 and 256 or 64), 1)
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

return {
  LONG_BODY = LONG_BODY,
  MOST_BYTES = MOST_BYTES,
  MOST_RECORDS = MOST_RECORDS,
  FIRST_RECORDS = FIRST_RECORDS,
  SMALL = SMALL,
  FEW_ACTIVE = FEW_ACTIVE,
  FEW_TRACES = FEW_TRACES,
  NO_LIST = NO_LIST,
  start = start,
  is_full = is_full,
  give_records = give_records,
  add_records = add_records,
  take_records = take_records,
  take_records_within = take_records_within,
  settle_keys = settle_keys,
  records_chunk = records_chunk,
  surplus_chunk = surplus_chunk,
}
