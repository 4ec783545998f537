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
local Allowed = require('allowed')
local Dedup = require('dedup')
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local Kinds = require('kinds')
local Length = require('length')
local Line = require('line')
local Memo = require('memo')
local Priority = require('priority')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, plan = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local next_blob = 5

  local function take_blob()
    next_blob = next_blob + 1
    return args[next_blob]
  end

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  -- Children in frames (lib/frame) have ids that somebody may give again.
  local function exists(id)
    return redis.call('HEXISTS', base .. 'jobs', id) == 1 or (queue.flows == 1 and Find.locate(queue, id) ~= nil)
  end

  local items = cmsgpack.unpack(plan)
  if queue.max_length > 0 then
    local n = 0
    for _, item in ipairs(items) do n = n + (item[1] > 0 and item[1] or item[1] == 0 and item[2] or 1) end
    local full = Length.refuse_beyond(queue, n)
    if full then return full end
  end

  Allowed.require_commands(queue, { 'SET', 'XADD', 'ZADD', 'HSET', 'LPUSH', 'RPUSH', 'LPOP', 'XTRIM' })
  Kinds.require_kinds_of_line(queue)
  queue.is_safe = true

  local first = queue.id + 1
  local exceptions = {}
  local references, reference_number, delayed, dues, sooner = {}, 0, {}, {}, false
  local ranked = {}

  local function flush_references()
    if #references > 0 then Line.append_references(queue, references, reference_number) end
    references = {}
  end

  local function append_all(list, more)
    local n = #list
    for i = 1, #more do list[n + i] = more[i] end
  end

  -- Writes what the batch holds so far.
  local function settle()
    flush_references()
    if #delayed > 0 then sooner = Delayed.delay_jobs(queue, delayed, dues) or sooner end
    delayed, dues = {}, {}
  end

  -- What records enter: the line, its head, the prioritized or the delayed jobs. `ids` in the order of adding; `which` as events name them.
  local function enter(which, ids, names, kind)
    if #ids == 0 then return end
    if kind.priorities ~= 0 then Priority.expect_priorities(queue) end
    if kind.dues ~= 0 then
      Events.emit(queue, 2 * #ids, { 'B', which, #ids, names, 'delayed', kind.dues })
      append_all(delayed, ids)
      append_all(dues, kind.dues)
      return
    end
    Events.emit(queue, 2 * #ids, { 'B', which, #ids, names, 'waiting' })
    if kind.priorities ~= 0 then
      local at, place = #ranked, queue.place
      for i, id in ipairs(ids) do
        ranked[at + 1], ranked[at + 2] = kind.priorities[i] * Priority.PRIORITY_STEP + place + i, id
        at = at + 2
      end
      queue.place = place + #ids
    elseif kind.front == 1 then
      -- the last of them heads the line
      local reversed = {}
      for i = #ids, 1, -1 do reversed[#reversed + 1] = ids[i] end
      Line.push_front(queue, reversed)
    elseif kind.large then
      -- what is taken beyond the jobs that start is bounded entry by entry
      flush_references()
      for _, id in ipairs(ids) do Line.append_references(queue, { id }, queue.id) end
    else
      append_all(references, ids)
      reference_number = queue.id
    end
  end

  local function add_large_data(id, data)
    redis.call('HSET', base .. 'large', 'd' .. id, data)
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack({ ld = #data }))
  end

  local function add_numbered(n, names, kind)
    local number, fields, ids = queue.id, {}, {}
    -- Redis writes numbers as texts more cheaply than Lua; references are packed as texts
    local refers = kind.large or (kind.dues == 0 and kind.priorities == 0)
    for i = 1, n do
      local id = refers and State.whole(number + i) or number + i
      ids[i], fields[2 * i - 1], fields[2 * i] = id, id, take_blob()
      if kind.large then add_large_data(id, take_blob()) end
    end
    queue.id = number + n
    Line.call_in_chunks('HSET', base .. 'jobs', fields)
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
      queue.id = queue.id + 1
      exceptions[#exceptions + 1] = queue.id - first
      exceptions[#exceptions + 1] = id
      if seen[id] or exists(id) then
        enter(new, new, new_names, new_kind)
        start()
        Events.emit_job(queue, 'duplicated', id)
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
    Line.call_in_chunks('HSET', base .. 'jobs', fields)
    enter(new, new, new_names, new_kind)
  end

  -- A record that may yield to another job.
  local function add_deduplicated(item)
    local body = take_blob()
    queue.id = queue.id + 1
    local id, owner = item[2], nil
    if id ~= '' and exists(id) then
      Events.emit_job(queue, 'duplicated', id)
    else
      if id == '' then id = State.whole(queue.id) end
      owner = Dedup.deduplicate(queue, item, id, body, settle)
      if not owner then
        redis.call('HSET', base .. 'jobs', id, body)
        redis.call('HSET', base .. 'vitals', id, cmsgpack.pack({ di = item[6][1] }))
        local kind = { dues = item[4] > 0 and { item[4] } or 0, front = item[5], priorities = item[7] ~= 0 and { item[7] } or 0 }
        enter({ id }, { id }, item[3], kind)
      end
    end
    if (owner or id) ~= State.whole(queue.id) then
      exceptions[#exceptions + 1] = queue.id - first
      exceptions[#exceptions + 1] = owner or id
    end
  end

  for _, item in ipairs(items) do
    local n = item[1]
    if n > 0 then
      flush_references()
      Line.append_entry(queue, State.entry_id(queue.id + 1, n), 'f', take_blob())
      Events.emit(queue, 2 * n, { 'A', queue.id + 1, n, item[2] })
      queue.id = queue.id + n
      queue.waiting = queue.waiting + n
    elseif n < 0 then
      add_deduplicated(item)
    else
      local kind = { dues = item[5], front = item[6], priorities = item[7], large = item[8] }
      if item[3] == '' then add_numbered(item[2], item[4], kind) else add_named(item[3], item[4], kind) end
    end
  end
  settle()
  Line.call_in_chunks('ZADD', base .. 'prioritized', ranked)
  if queue.waiting > 0 or #ranked > 0 or sooner then Line.wake(queue) end
  Events.flush_events(queue, now_ms)
  local reply = { first, exceptions }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
