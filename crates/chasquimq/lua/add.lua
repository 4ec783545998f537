-- add: new -> waiting | delayed. Adds a batch of jobs, in order, once however often it is sent.
-- KEYS    base (also: state meta log front jobs delayed events wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack), then a blob an item of the plan
--         plan item: {n, names} a frame of n jobs | {0, id, name, due_ms, front} a record (id '' = its number; due_ms 0 = waiting)
-- RETURNS {first, {index, id, index, id, ...}} index of each job whose id is not first + index, and its id
-- ERRORS  none      EVENTS added, waiting, delayed, duplicated      COST O(frames + records * log delayed)
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
-- @include lib/delayed

local first = S.id + 1
local exceptions = {}
local records, dues = {}, {}
local references, reference_number = {}, 0
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

local function add_record(item, body, index)
  local id, name, due_ms, front = item[2], item[3], item[4], item[5]
  S.id = S.id + 1
  if id == '' then
    id = whole(S.id)
  else
    exceptions[#exceptions + 1] = index
    exceptions[#exceptions + 1] = id
    -- a custom id earlier in this batch is not in the hash yet
    if records[id] or redis.call('HEXISTS', base .. 'jobs', id) == 1 then
      flush_group()
      emit_job('duplicated', id)
      return
    end
  end
  records[#records + 1] = id
  records[#records + 1] = body
  records[id] = true
  local event = due_ms > 0 and 'delayed' or 'waiting'
  if group and group[4] ~= event then flush_group() end
  group = group or { 'B', {}, {}, event, due_ms > 0 and {} or nil }
  table.insert(group[2], id)
  table.insert(group[3], name)
  if due_ms > 0 then
    table.insert(group[5], whole(due_ms))
    dues[#dues + 1] = delayed_score(due_ms)
    dues[#dues + 1] = id
  elseif front == 1 then
    push_front({ id })
  else
    references[#references + 1] = id
    reference_number = S.id
  end
end

local index = 0
for i, item in ipairs(cmsgpack.unpack(plan)) do
  local blob = ARGV[FIRST_BLOB + i - 1]
  local n = item[1]
  if n > 0 then
    flush_references()
    flush_group()
    redis.call('XADD', base .. 'log', entry_id(S.id + 1, n), 'f', blob)
    emit(2 * n, { 'A', S.id + 1, n, item[2] })
    S.id = S.id + n
    S.waiting = S.waiting + n
    index = index + n
  else
    add_record(item, blob, index)
    index = index + 1
  end
end
flush_references()
flush_group()

if #records > 0 then call_in_chunks('HSET', base .. 'jobs', records) end
local sooner = false
if #dues > 0 then
  local before = next_due()
  call_in_chunks('ZADD', base .. 'delayed', dues)
  sooner = not before or next_due() < before
end
if S.waiting > 0 or sooner then wake() end
flush_events(now_ms)
save_state()
local reply = { first, exceptions }
remember(client, slot, number, reply)
return reply
