-- add: new -> waiting | prioritized | delayed. Adds a batch of jobs, in order, once however often it is sent.
-- KEYS    base (also: state meta log front jobs vitals prioritized delayed events wake memo:<client>:<slot>; for deduplicated jobs: de:<id> active
--         traces logged logs:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack), then the plan's blobs, in its order
--         plan item: {n, names} a frame of n jobs: one blob | {-n, names, priorities} n records with a priority: a blob each |
--         {0, id, name, due_ms, front, dedup, priority} a record: one blob (id '' = its number; due_ms 0 = at once; dedup: lib/dedup, or
--         nil; priority 0 = none); names: one text for all, or one a job
-- RETURNS {first, {index, id, index, id, ...}} index of each job whose id is not first + index, and its id
-- ERRORS  none      EVENTS added, waiting, delayed, duplicated, deduplicated, removed      COST O(frames + records * log(delayed + prioritized))
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local base = KEYS[1]
local now_ms, client, slot, number, plan = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local FIRST_BLOB = 6

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/records
-- @include lib/dedup

local first = S.id + 1
local exceptions = {}
local records, vitals, dues, sooner = {}, {}, {}, false
local references, reference_number = {}, 0
local prioritized, fronts, ranked = {}, {}, false
local group

local function flush_references()
  if #references > 0 then
    append_references(references, reference_number)
    references = {}
  end
end

-- Jobs of one kind that follow each other share an event group.
local function flush_group()
  if group then
    emit(2 * #group[2], group)
    group = nil
  end
end

-- Writes what the batch holds so far.
local function settle()
  flush_references()
  flush_group()
  call_in_chunks('HSET', base .. 'jobs', records)
  call_in_chunks('HSET', base .. 'vitals', vitals)
  call_in_chunks('ZADD', base .. 'prioritized', prioritized)
  call_in_chunks('LPUSH', base .. 'front', fronts)
  S.waiting = S.waiting + #fronts
  ranked = ranked or #prioritized > 0
  if #dues > 0 then
    local before = next_due()
    call_in_chunks('ZADD', base .. 'delayed', dues)
    sooner = sooner or not before or next_due() < before
  end
  records, vitals, dues, prioritized, fronts = {}, {}, {}, {}, {}
end

-- A custom id earlier in this batch may not be in the hash yet.
local function exists(id)
  return records[id] or redis.call('HEXISTS', base .. 'jobs', id) == 1
end

-- The id of a record that is to be added, or of the job it yields to and false.
local function identify(item, body)
  local id = item[2]
  S.id = S.id + 1
  if id == '' then
    id = whole(S.id)
  elseif exists(id) then
    flush_group()
    emit_job('duplicated', id)
    return id, false
  end
  local owner = item[6] and deduplicate(item, id, body, settle)
  return owner or id, not owner
end

local function add_record(item, body, index)
  local name, due_ms, front, dedup, priority = item[3], item[4], item[5], item[6], item[7]
  local id, is_new = identify(item, body)
  if id ~= whole(S.id) then
    exceptions[#exceptions + 1] = index
    exceptions[#exceptions + 1] = id
  end
  if not is_new then return end
  records[#records + 1] = id
  records[#records + 1] = body
  records[id] = true
  if dedup then
    vitals[#vitals + 1] = id
    vitals[#vitals + 1] = cmsgpack.pack({ di = dedup[1] })
  end
  local event = due_ms > 0 and 'delayed' or 'waiting'
  if group and group[4] ~= event then flush_group() end
  group = group or { 'B', {}, {}, event, due_ms > 0 and {} or nil }
  table.insert(group[2], id)
  table.insert(group[3], name)
  if due_ms > 0 then
    table.insert(group[5], whole(due_ms))
    dues[#dues + 1] = delayed_score(due_ms)
    dues[#dues + 1] = id
    if priority ~= 0 then expect_priorities() end
  elseif priority ~= 0 then
    prioritized[#prioritized + 1] = priority * PRIORITY_STEP + next_place()
    prioritized[#prioritized + 1] = id
  elseif front == 1 then
    fronts[#fronts + 1] = id
  else
    references[#references + 1] = id
    reference_number = S.id
  end
end

-- Numbered records with a priority, one behind the other. Redis writes numbers as texts more cheaply than Lua.
local function add_prioritized(n, names, priorities, blob)
  expect_priorities()
  local place, at, rank = S.place, #records, #prioritized
  for i = 1, n do
    local id = S.id + i
    records[at + 1], records[at + 2] = id, ARGV[blob]
    prioritized[rank + 1], prioritized[rank + 2] = priorities[i] * PRIORITY_STEP + place + i, id
    at, rank, blob = at + 2, rank + 2, blob + 1
  end
  emit(2 * n, { 'A', S.id + 1, n, names })
  S.id, S.place = S.id + n, place + n
end

local index, blob = 0, FIRST_BLOB
for _, item in ipairs(cmsgpack.unpack(plan)) do
  local n = item[1]
  if n == 0 then
    add_record(item, ARGV[blob], index)
    index, blob = index + 1, blob + 1
  else
    flush_references()
    flush_group()
    if n > 0 then
      redis.call('XADD', base .. 'log', entry_id(S.id + 1, n), 'f', ARGV[blob])
      emit(2 * n, { 'A', S.id + 1, n, item[2] })
      S.id = S.id + n
      S.waiting = S.waiting + n
      index, blob = index + n, blob + 1
    else
      add_prioritized(-n, item[2], item[3], blob)
      index, blob = index - n, blob - n
    end
  end
end
settle()
if S.waiting > 0 or ranked or sooner then wake() end
flush_events(now_ms)
save_state()
local reply = { first, exceptions }
remember(client, slot, number, reply)
return reply
