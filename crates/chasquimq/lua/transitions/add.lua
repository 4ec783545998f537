-- add: new -> waiting | prioritized | delayed. Adds a batch of jobs, in order, once however often it is sent.
-- KEYS    base (also: state meta log front jobs vitals large prioritized delayed delays expiring events trims wake memo:<client>:<slot>; for deduplicated jobs:
--         de:<id> active traces logged logs:<id>; where there are flows: takes holes runs completed failed waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack), then a blob a frame, and a body a record, behind each of large ones
--         their data
--         plan item: {n, names} a frame of n jobs | {0, n, ids, names, dues, front, priorities, large} n records of one kind, in
--         columns:
--         ids (one a job; '' = all their numbers), names (one text, or one a job), dues (epoch ms a job; 0 = all at once), front
--         (1|0), priorities (one a job; 0 = none), large (1: jobs/large; else false, or not there), groups (one a job, a text, or {group, most jobs, weight, order},
--         of which each may be 0: states/groups; else not there), terms (one a job: rules/terms; else not there)
--         | {-1, id, name, due_ms, front, dedup, priority, group, terms} a record that may yield to another job (id '' = its number; dedup: rules/deduplication)
-- RETURNS {first, {index, id, index, id, ...}} index of each job whose id is not first + index, and its id |
--         {-12, n, length, max_length} (rules/length) | {-13, group, size, most} (rules/group_size)
-- ERRORS  -12 full, -13 group full      EVENTS added, waiting, delayed, duplicated, deduplicated, removed      COST O(frames + records * log(delayed + prioritized))
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local AclCheck = require('acl_check')
local Deduplication = require('deduplication')
local Delayed = require('delayed')
local EventLog = require('event_log')
local Events = require('events')
local Find = require('find')
local GroupSize = require('group_size')
local Groups = require('groups')
local Large = require('large')
local Length = require('length')
local Memo = require('memo')
local Prioritized = require('prioritized')
local State = require('state')
local StraightRecord = require('straight_record')
local Terms = require('terms')
local TypeCheck = require('type_check')
local WaitingList = require('waiting_list')

local COMMANDS, FRONT_COMMANDS, MARK_COMMANDS = { 'SET', 'XADD', 'ZADD', 'HSET' }, { 'LPUSH' }, { 'RPUSH', 'LPOP', 'XTRIM' }
-- Events that one job makes at most: those of a job that replaces another.
local MOST_EVENTS = 4

-- The groups of the jobs that the items bring, as they are named there.
local function groups_of(items)
  local groups = {}
  for _, item in ipairs(items) do
    if item[1] == 0 then
      for _, group in ipairs(item[9] or {}) do groups[#groups + 1] = group end
    elseif item[1] < 0 then
      groups[#groups + 1] = item[8]
    end
  end
  return groups
end

-- How many jobs the items bring, and whether some may head the waiting list, be delayed, have a priority, have a group, or have terms.
local function survey(items)
  local jobs, front, delayed, ranked, grouped, terms = 0, false, false, false, false, false
  for _, item in ipairs(items) do
    if item[1] > 0 then
      jobs = jobs + item[1]
    elseif item[1] == 0 then
      jobs = jobs + item[2]
      delayed, front, ranked = delayed or item[5] ~= 0, front or item[6] == 1, ranked or item[7] ~= 0
      grouped, terms = grouped or item[9], terms or item[10]
    else
      -- what becomes of a job that it yields to, or replaces, is not known yet
      jobs, front, delayed, ranked = jobs + 1, true, true, true
      grouped, terms = grouped or item[8], terms or item[9]
    end
  end
  return jobs, front, delayed, ranked, grouped, terms
end

-- Refuses the call as a whole, not half-way, for what it may not do. Each look costs as much as a write: those that the items need.
-- Gives the answer when the queue has no room for them.
local function refuse(queue, items)
  local jobs, front, delayed, ranked, grouped, terms = survey(items)
  local full = queue.max_length > 0 and Length.refuse_beyond(queue, jobs)
  if full then return full end
  local group_full = grouped and GroupSize.refuse_beyond(queue, groups_of(items))
  if group_full then return group_full end
  AclCheck.require_commands(queue, COMMANDS)
  if front then AclCheck.require_commands(queue, FRONT_COMMANDS) end
  if EventLog.is_mark_due(queue, MOST_EVENTS * jobs) then AclCheck.require_commands(queue, MARK_COMMANDS) end
  TypeCheck.require_type(queue, 'HLEN', 'jobs')
  TypeCheck.require_type(queue, 'ZCARD', 'wake')
  if front then TypeCheck.require_type(queue, 'LLEN', 'front') end
  if delayed then TypeCheck.require_type(queue, 'ZCARD', 'delayed') end
  if ranked then TypeCheck.require_type(queue, 'ZCARD', 'prioritized') end
  if terms then TypeCheck.require_type(queue, 'ZCARD', 'expiring') end
  queue.is_safe = true
end

-- Of a queue: batch, what the call has gathered and not written: references, and the number that they stand behind; delayed, and their dues; ranked, scores
-- and ids; sooner: one is due before all that are delayed. args and at: blobs, and the last that was read; exceptions: see RETURNS.
local function start(queue, args, at)
  queue.batch = State.with_lists({ args = args, at = at, first = queue.id + 1, reference_number = 0, sooner = false })
end

local function take_blob(queue)
  local batch = queue.batch
  batch.at = batch.at + 1
  return batch.args[batch.at]
end

-- The job that was numbered last has this id.
local function note_exception(queue, id)
  WaitingList.append(queue.batch.exceptions, queue.id - queue.batch.first, id)
end

-- Children in frames (jobs/frame) have ids that somebody may give again.
local function exists(queue, id)
  return redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 or (queue.flows == 1 and Find.locate(queue, id) ~= nil)
end

local function flush_references(queue)
  local batch = queue.batch
  local references = rawget(batch, 'references')
  if not references then return end
  WaitingList.append_references(queue, references, batch.reference_number)
  batch.references = nil
end

-- The first ones become the list.
local function append_all(batch, name, more)
  local list = rawget(batch, name)
  if not list then
    batch[name] = more
    return
  end
  local n = #list
  for i = 1, #more do list[n + i] = more[i] end
end

-- Writes what the batch holds so far.
local function settle(queue)
  flush_references(queue)
  local batch = queue.batch
  local delayed = rawget(batch, 'delayed')
  if not delayed then return end
  batch.sooner = Delayed.delay_jobs(queue, delayed, batch.dues) or batch.sooner
  batch.delayed, batch.dues = nil, nil
end

local function rank(queue, ids, priorities)
  local ranked, place = queue.batch.ranked, Prioritized.places_for(queue, #ids)
  local at = #ranked
  local step = Prioritized.PRIORITY_STEP
  for i = 1, #ids do
    ranked[at + 1], ranked[at + 2] = priorities[i] * step + place + i, ids[i]
    at = at + 2
  end
end

-- What records enter: the waiting list, its head, the prioritized or the delayed jobs. `ids` in the order of adding; `which` as events name them.
local function enter(queue, which, ids, names, kind)
  if #ids == 0 then return end
  local batch = queue.batch
  if kind.priorities ~= 0 then Prioritized.expect_priorities(queue) end
  if kind.groups then
    GroupSize.note(queue, ids, kind.groups, kind.dues)
    Groups.expect(queue)
  end
  if kind.dues ~= 0 then
    Events.emit(queue, 2 * #ids, { 'B', which, #ids, names, 'delayed', kind.dues })
    append_all(batch, 'delayed', ids)
    append_all(batch, 'dues', kind.dues)
    return
  end
  Events.emit(queue, 2 * #ids, { 'B', which, #ids, names, 'waiting' })
  if kind.groups then
    Groups.enter_end(queue, ids, GroupSize.names_of(kind.groups), kind.priorities)
    batch.grouped = true
  elseif kind.priorities ~= 0 then
    rank(queue, ids, kind.priorities)
  elseif kind.front == 1 then
    -- the last of them heads the waiting list
    local reversed = {}
    for i = #ids, 1, -1 do reversed[#reversed + 1] = ids[i] end
    WaitingList.push_front(queue, reversed)
  elseif kind.large then
    -- what is taken beyond the jobs that start is bounded entry by entry
    flush_references(queue)
    for _, id in ipairs(ids) do WaitingList.append_references(queue, { id }, queue.id) end
  else
    append_all(batch, 'references', ids)
    batch.reference_number = queue.id
  end
end

-- data: of one whose data lie apart; terms: of one that has any.
local function add_fields(queue, id, data, terms)
  local fields = { ld = data and Large.put_data(queue, id, data) or nil }
  Terms.note(queue, id, fields, terms)
  redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
end

local function add_numbered(queue, n, names, kind)
  local number, fields, ids = queue.id, {}, {}
  -- Redis writes numbers as texts more cheaply than Lua; references are packed as texts
  local refers = kind.large or (kind.dues == 0 and kind.priorities == 0 and not kind.groups)
  local batch, stride = queue.batch, kind.large and 2 or 1
  local args, at = batch.args, batch.at + 1
  for i = 1, n do
    local id = refers and State.whole(number + i) or number + i
    ids[i], fields[2 * i - 1], fields[2 * i] = id, id, args[at]
    if kind.large or kind.terms then add_fields(queue, id, kind.large and args[at + 1], kind.terms and kind.terms[i]) end
    at = at + stride
  end
  batch.at = at - 1
  queue.id = number + n
  WaitingList.call_in_chunks('HSET', queue.base .. 'jobs', fields)
  enter(queue, number + 1, ids, names, kind)
end

-- New records that were told one behind the other, and what they are like.
local function part_of(kind)
  return {}, {}, { front = kind.front, dues = kind.dues ~= 0 and {} or 0, priorities = kind.priorities ~= 0 and {} or 0, large = kind.large, groups = kind.groups and {} }
end

-- Records that bring their ids. What exists already is told in its place, and not added.
local function add_named(queue, ids, names, kind)
  local fields, seen = {}, {}
  local new, new_names, new_kind = part_of(kind)
  for i, id in ipairs(ids) do
    local body, data = take_blob(queue), kind.large and take_blob(queue)
    queue.id = queue.id + 1
    note_exception(queue, id)
    if seen[id] or exists(queue, id) then
      enter(queue, new, new, new_names, new_kind)
      new, new_names, new_kind = part_of(kind)
      Events.emit_job(queue, 'duplicated', id)
    else
      seen[id] = true
      new[#new + 1] = id
      new_names[#new] = type(names) == 'table' and names[i] or names
      if kind.dues ~= 0 then new_kind.dues[#new] = kind.dues[i] end
      if kind.priorities ~= 0 then new_kind.priorities[#new] = kind.priorities[i] end
      if kind.groups then new_kind.groups[#new] = kind.groups[i] end
      WaitingList.append(fields, id, body)
      if data or kind.terms then add_fields(queue, id, data, kind.terms and kind.terms[i]) end
    end
  end
  WaitingList.call_in_chunks('HSET', queue.base .. 'jobs', fields)
  enter(queue, new, new, new_names, new_kind)
end

-- A record that may yield to another job.
local function add_deduplicated(queue, item)
  local body = take_blob(queue)
  queue.id = queue.id + 1
  local id, owner = item[2], nil
  if id ~= '' and exists(queue, id) then
    Events.emit_job(queue, 'duplicated', id)
  else
    if id == '' then id = State.whole(queue.id) end
    owner = Deduplication.deduplicate(queue, item, id, body, settle)
    if not owner then
      redis.call('HSET', queue.base .. 'jobs', id, body)
      local fields = Deduplication.fields_of(item[6])
      Terms.note(queue, id, fields, item[9])
      redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
      local kind = { dues = item[4] > 0 and { item[4] } or 0, front = item[5], priorities = item[7] ~= 0 and { item[7] } or 0,
        groups = item[8] and { item[8] } }
      enter(queue, { id }, { id }, item[3], kind)
    end
  end
  if (owner or id) ~= State.whole(queue.id) then note_exception(queue, owner or id) end
end

local function add_frame(queue, n, names)
  flush_references(queue)
  WaitingList.append_entry(queue, State.entry_id(queue.id + 1, n), 'f', take_blob(queue))
  Events.emit(queue, 2 * n, { 'A', queue.id + 1, n, names })
  queue.id = queue.id + n
  queue.waiting = queue.waiting + n
end

local function add_item(queue, item)
  local n = item[1]
  if n > 0 then
    add_frame(queue, n, item[2])
  elseif n < 0 then
    add_deduplicated(queue, item)
  else
    local kind = { dues = item[5], front = item[6], priorities = item[7], large = item[8], groups = item[9], terms = item[10] }
    if item[3] == '' then add_numbered(queue, item[2], item[4], kind) else add_named(queue, item[3], item[4], kind) end
  end
end

-- worker: who waits, of whoever calls this for one (add_and_step), and tells others.
return function(keys, args, worker)
  local base = keys[1]
  local now_ms, client, slot, number, plan = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local LAST_PLAIN = 5

  local memo = Memo.key_of(base, client, slot)
  local raw, known = Memo.read_beside(base, memo, number)
  if known then return cmsgpack.unpack(known) end

  local items = cmsgpack.unpack(plan)
  if raw and #items == 1 then
    local reply = StraightRecord.run(base, raw, items[1], args, now_ms, worker)
    if reply then
      Memo.remember(base, client, slot, number, reply)
      return reply
    end
  end
  local queue = State.open(base, nil, raw)
  local full = refuse(queue, items)
  if full then return full end

  start(queue, args, LAST_PLAIN)
  for _, item in ipairs(items) do add_item(queue, item) end
  settle(queue)
  local batch = queue.batch
  local ranked = rawget(batch, 'ranked')
  if ranked then WaitingList.call_in_chunks('ZADD', base .. 'prioritized', ranked) end
  local may_start = not worker and (queue.waiting > 0 or ranked or (rawget(batch, 'grouped') and WaitingList.has_work(queue)))
  if batch.sooner or may_start then WaitingList.wake(queue) end
  Events.flush_events(queue, now_ms)
  local reply = { batch.first, batch.exceptions }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
