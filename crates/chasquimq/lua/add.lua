-- add: new -> waiting | prioritized | delayed. Adds a batch of jobs, in order, once however often it is sent.
-- KEYS    base (also: state meta log front jobs vitals large prioritized delayed delays events trims wake memo:<client>:<slot>; for deduplicated jobs:
--         de:<id> active traces logged logs:<id>; where there are flows: takes holes runs completed failed waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack), then a blob a frame, and a body a record, behind each of large ones
--         their data
--         plan item: {n, names} a frame of n jobs | {0, n, ids, names, dues, front, priorities, large} n records of one kind, in
--         columns:
--         ids (one a job; '' = all their numbers), names (one text, or one a job), dues (epoch ms a job; 0 = all at once), front
--         (1|0), priorities (one a job; 0 = none), large (1: lib/large; else not there)
--         | {-1, id, name, due_ms, front, dedup, priority} a record that may yield to another job (id '' = its number; dedup: lib/dedup)
-- RETURNS {first, {index, id, index, id, ...}} index of each job whose id is not first + index, and its id |
--         {-12, n, length, max_length} (lib/length)
-- ERRORS  -12 full      EVENTS added, waiting, delayed, duplicated, deduplicated, removed      COST O(frames + records * log(delayed + prioritized))
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local base = KEYS[1]
local now_ms, client, slot, number, plan = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local next_blob = 5

local function take_blob()
  next_blob = next_blob + 1
  return ARGV[next_blob]
end

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/length
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/records
-- @include lib/dedup
-- @include lib/allowed
-- @include lib/kinds

-- Children in frames (lib/frame) have ids that somebody may give again. What finds them is not even defined where there are none.
local find_child
if S.flows == 1 then
-- @include lib/frame
-- @include lib/find
  find_child = locate
end

local function exists(id)
  return redis.call('HEXISTS', base .. 'jobs', id) == 1 or (find_child and find_child(id) ~= nil)
end

local items = cmsgpack.unpack(plan)
if S.max_length > 0 then
  local n = 0
  for _, item in ipairs(items) do n = n + (item[1] > 0 and item[1] or item[1] == 0 and item[2] or 1) end
  local full = refuse_beyond(n)
  if full then return full end
end

require_commands({ 'SET', 'XADD', 'ZADD', 'HSET', 'LPUSH', 'RPUSH', 'LPOP', 'XTRIM' })
require_kinds_of_line()
S.is_safe = true

local first = S.id + 1
local exceptions = {}
local references, reference_number, delayed, dues, sooner = {}, 0, {}, {}, false
local ranked = {}

local function flush_references()
  if #references > 0 then append_references(references, reference_number) end
  references = {}
end

local function append_all(list, more)
  local n = #list
  for i = 1, #more do list[n + i] = more[i] end
end

-- Writes what the batch holds so far.
local function settle()
  flush_references()
  if #delayed > 0 then sooner = delay_jobs(delayed, dues) or sooner end
  delayed, dues = {}, {}
end

-- What records enter: the line, its head, the prioritized or the delayed jobs. `ids` in the order of adding; `which` as events name them.
local function enter(which, ids, names, kind)
  if #ids == 0 then return end
  if kind.priorities ~= 0 then expect_priorities() end
  if kind.dues ~= 0 then
    emit(2 * #ids, { 'B', which, #ids, names, 'delayed', kind.dues })
    append_all(delayed, ids)
    append_all(dues, kind.dues)
    return
  end
  emit(2 * #ids, { 'B', which, #ids, names, 'waiting' })
  if kind.priorities ~= 0 then
    local at, place = #ranked, S.place
    for i, id in ipairs(ids) do
      ranked[at + 1], ranked[at + 2] = kind.priorities[i] * PRIORITY_STEP + place + i, id
      at = at + 2
    end
    S.place = place + #ids
  elseif kind.front == 1 then
    -- the last of them heads the line
    local reversed = {}
    for i = #ids, 1, -1 do reversed[#reversed + 1] = ids[i] end
    push_front(reversed)
  elseif kind.large then
    -- what is taken beyond the jobs that start is bounded entry by entry
    flush_references()
    for _, id in ipairs(ids) do append_references({ id }, S.id) end
  else
    append_all(references, ids)
    reference_number = S.id
  end
end

local function add_large_data(id, data)
  redis.call('HSET', base .. 'large', 'd' .. id, data)
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack({ ld = #data }))
end

local function add_numbered(n, names, kind)
  local number, fields, ids = S.id, {}, {}
  -- Redis writes numbers as texts more cheaply than Lua; references are packed as texts
  local refers = kind.large or (kind.dues == 0 and kind.priorities == 0)
  for i = 1, n do
    local id = refers and whole(number + i) or number + i
    ids[i], fields[2 * i - 1], fields[2 * i] = id, id, take_blob()
    if kind.large then add_large_data(id, take_blob()) end
  end
  S.id = number + n
  call_in_chunks('HSET', base .. 'jobs', fields)
  enter(number + 1, ids, names, kind)
end

-- Records that bring their ids. What exists already is told in its place, and not added.
local function add_named(ids, names, kind)
  local fields, seen = {}, {}
  local new, new_names, new_kind
  local function start()
    new, new_names = {}, {}
    new_kind = { front = kind.front, dues = kind.dues ~= 0 and {} or 0, priorities = kind.priorities ~= 0 and {} or 0,
      large = kind.large }
  end
  start()
  for i, id in ipairs(ids) do
    local body, data = take_blob(), kind.large and take_blob()
    S.id = S.id + 1
    exceptions[#exceptions + 1] = S.id - first
    exceptions[#exceptions + 1] = id
    if seen[id] or exists(id) then
      enter(new, new, new_names, new_kind)
      start()
      emit_job('duplicated', id)
    else
      seen[id] = true
      new[#new + 1] = id
      new_names[#new] = type(names) == 'table' and names[i] or names
      if kind.dues ~= 0 then new_kind.dues[#new] = kind.dues[i] end
      if kind.priorities ~= 0 then new_kind.priorities[#new] = kind.priorities[i] end
      fields[#fields + 1], fields[#fields + 2] = id, body
      if data then add_large_data(id, data) end
    end
  end
  call_in_chunks('HSET', base .. 'jobs', fields)
  enter(new, new, new_names, new_kind)
end

-- A record that may yield to another job.
local function add_deduplicated(item)
  local body = take_blob()
  S.id = S.id + 1
  local id, owner = item[2], nil
  if id ~= '' and exists(id) then
    emit_job('duplicated', id)
  else
    if id == '' then id = whole(S.id) end
    owner = deduplicate(item, id, body, settle)
    if not owner then
      redis.call('HSET', base .. 'jobs', id, body)
      redis.call('HSET', base .. 'vitals', id, cmsgpack.pack({ di = item[6][1] }))
      local kind = { dues = item[4] > 0 and { item[4] } or 0, front = item[5], priorities = item[7] ~= 0 and { item[7] } or 0 }
      enter({ id }, { id }, item[3], kind)
    end
  end
  if (owner or id) ~= whole(S.id) then
    exceptions[#exceptions + 1] = S.id - first
    exceptions[#exceptions + 1] = owner or id
  end
end

for _, item in ipairs(items) do
  local n = item[1]
  if n > 0 then
    flush_references()
    append_entry(entry_id(S.id + 1, n), 'f', take_blob())
    emit(2 * n, { 'A', S.id + 1, n, item[2] })
    S.id = S.id + n
    S.waiting = S.waiting + n
  elseif n < 0 then
    add_deduplicated(item)
  else
    local kind = { dues = item[5], front = item[6], priorities = item[7], large = item[8] }
    if item[3] == '' then add_numbered(item[2], item[4], kind) else add_named(item[3], item[4], kind) end
  end
end
settle()
call_in_chunks('ZADD', base .. 'prioritized', ranked)
if S.waiting > 0 or #ranked > 0 or sooner then wake() end
flush_events(now_ms)
local reply = { first, exceptions }
remember(client, slot, number, reply)
return reply
