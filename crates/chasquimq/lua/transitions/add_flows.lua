-- add_flows: new -> waiting | prioritized | delayed | waiting-children, for trees of parents and children in any number of queues, and for
-- children of parents that exist, all at once, once however often it is sent.
-- KEYS    base (also, of this and of the other queues: state meta log front takes frames apart:<first> holes runs jobs vitals large traces prioritized delayed
--         delays expiring active completed failed waiting-children events trims wake parents children:<id> spans:<id> processed:<id> logged logs:<id>
--         de:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack: bases, queues, ids, names, parents, extras, named_by, frames), then a
--         body a job
--         columns, of jobs that stand behind their parents: queues (index of a base a job), ids ('' = its number), names, parents (index of
--         a job; 0 = none)
--         extras, of some jobs, by their index: {is_given (1|0: the id may exist), due_ms (0 = at once), front (1|0), priority (0 = none),
--         policy (states/parents), delay_ms (of a parent, once it starts), parent ({base, id} that exists, or 0), dedup (rules/deduplication, or 0),
--         group (as in add, if it has one), terms (rules/terms, if it has any)}
--         frames: what stands in the place of a job and is a frame of children, by its index: {n (jobs), names (one text, or one a job),
--         parents (indexes of jobs that are not refused), how many children each of them has here}; its body is its blob, and named_by
--         what the ids of its jobs begin with, in each of the queues (jobs/frame)
-- RETURNS {{index, id | -5 | -7, ...} of each job whose id is not the one that was sent, {first number of each frame, ...}} |
--         {-12, n, length, max_length, index of the base} (rules/length) | {-13, group, size, most, index of the base} (rules/group_size)
-- ERRORS  -12 full, -13 group full, -5 missing parent (the job and those below it are not added), -7 it has another parent      EVENTS added, waiting, delayed,
--         waiting-children, duplicated, deduplicated, removed      COST O(jobs * log(delayed + prioritized + waiting-children))
-- SOURCE  BullMQ 6.7 FlowProducer#add, #addBulk, Queue#add with a parent (differs: what is refused is left out with all below it)
local AclCheck = require('acl_check')
local Deduplication = require('deduplication')
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local GroupSize = require('group_size')
local Groups = require('groups')
local Length = require('length')
local Locate = require('locate')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Prioritized = require('prioritized')
local SiblingRanges = require('sibling_ranges')
local State = require('state')
local Terms = require('terms')
local TypeCheck = require('type_check')
local WaitingList = require('waiting_list')

-- Of a call: tree, what is to be added, and what became of it. The plan's columns by name; args, whose bodies come behind FIRST_BODY; exceptions and
-- firsts: see RETURNS; refused and is_parent, by the index of a job; yielding: a parent of these may yield to a job that exists; families: what each
-- parent gets: of (its base), id, keys (of children), ranges (jobs/sibling_ranges), fields (packed state fields, of its children by policy); family_by:
-- of a parent that is both of these jobs and one that exists, two names; known_parents: base and id of those of the first known_families of the families.
-- Of a queue: batch, what its jobs have in common until they are written: lists, and the event that the latest have in common, with its ids, names and
-- event_dues; framed: a frame was added.
local FIRST_BODY = 5
local NO_EXTRA = { 0, 0, 0, 0, '', 0, 0, 0 }
-- State fields of a parent that is nobody's child, packed: {ch = 1}.
local ROOT_FIELDS = '\129\162ch\1'
local COMMANDS = { 'SET', 'XADD', 'ZADD', 'HSET', 'SADD', 'LPUSH', 'RPUSH', 'LPOP', 'XTRIM' }

local function read_tree(plan, args)
  local columns = cmsgpack.unpack(plan)
  return { bases = columns[1], queues = columns[2], ids = columns[3], names = columns[4], parents = columns[5], extras = columns[6],
    named_by = columns[7], frames = columns[8], args = args, exceptions = {}, refused = {}, is_parent = {}, firsts = {}, families = {},
    family_by = {}, known_parents = {}, known_families = 0, yielding = false }
end

local function except(tree, i, id)
  WaitingList.append(tree.exceptions, i - 1, id)
end

-- The family of this parent: a job of these, or {base, id} of one that exists.
local function family_under(tree, parent, outer)
  local name = outer and outer[1] .. outer[2] or parent
  local found = tree.family_by[name]
  if not found then
    found = { of = outer and outer[1] or tree.bases[tree.queues[parent]], id = outer and outer[2] or tree.ids[parent], keys = {}, ranges = {},
      fields = {} }
    tree.family_by[name] = found
    tree.families[#tree.families + 1] = found
  end
  return found
end

-- The family that a job is a child in; nil when it has no parent.
local function family_of(tree, i)
  local parent, extra = tree.parents[i], tree.extras[i]
  local outer = extra and extra[7] ~= 0 and extra[7]
  if parent == 0 and not outer then return nil end
  return family_under(tree, parent, outer)
end

-- A job that exists becomes a parent. False when there is no such job.
local function adopt(queue, id)
  local job = Find.locate(queue, id)
  if not job then return false end
  local fields = Locate.detach(queue, job)
  queue.flows = 1
  if not fields.ch then
    fields.ch = 1
    redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
    redis.call('SADD', queue.base .. 'parents', id)
  end
  return true
end

-- Says of each job whether it may be added, and is a parent. Nothing is written before that but what `adopt` writes.
local function check(queue, tree)
  for i = 1, #tree.ids do
    local parent, extra, frame = tree.parents[i], tree.extras[i], tree.frames[i]
    if frame then
      for _, index in ipairs(frame[3]) do tree.is_parent[index] = true end
    elseif parent > 0 then
      tree.is_parent[parent] = true
      tree.refused[i] = tree.refused[parent]
      local above = tree.extras[parent]
      if above and above[8] ~= 0 then tree.yielding = true end
    elseif extra and extra[7] ~= 0 then
      if not OtherQueues.in_queue(queue, extra[7][1], function(queue) return adopt(queue, extra[7][2]) end) then
        tree.refused[i] = true
        except(tree, i, -5)
      end
    end
  end
end

local function start_batch(queue)
  queue.batch = { jobs = {}, fields = {}, references = {}, ranked = {}, delayed = {}, dues = {}, parked = {}, parents = {},
    grouped = {}, groups = {}, group_priorities = {}, event = false, ids = {}, names = {}, event_dues = {}, framed = false }
end

local function tell_added(queue)
  local batch = queue.batch
  local n = #batch.ids
  if n == 0 then return end
  Events.emit(queue, 2 * n, { 'B', batch.ids, n, batch.names, batch.event, batch.event == 'delayed' and batch.event_dues or nil })
  batch.ids, batch.names, batch.event_dues = {}, {}, {}
end

local function note_added(queue, event, i, id, due_ms)
  local batch = queue.batch
  if batch.event ~= event then
    tell_added(queue)
    batch.event = event
  end
  local n = #batch.ids + 1
  batch.ids[n], batch.names[n], batch.event_dues[n] = id, queue.call.tree.names[i], due_ms
end

local function write_batch(queue)
  tell_added(queue)
  local batch, base = queue.batch, queue.base
  WaitingList.call_in_chunks('HSET', base .. 'jobs', batch.jobs)
  WaitingList.call_in_chunks('HSET', base .. 'vitals', batch.fields)
  WaitingList.call_in_chunks('SADD', base .. 'parents', batch.parents)
  WaitingList.call_in_chunks('ZADD', base .. 'waiting-children', batch.parked)
  WaitingList.call_in_chunks('ZADD', base .. 'prioritized', batch.ranked)
  if #batch.references > 0 then WaitingList.append_references(queue, batch.references) end
  if #batch.grouped > 0 then Groups.enter_end(queue, batch.grouped, GroupSize.names_of(batch.groups), batch.group_priorities) end
  local may_start = #batch.grouped > 0 and WaitingList.has_work(queue)
  local sooner = #batch.delayed > 0 and Delayed.delay_jobs(queue, batch.delayed, batch.dues)
  if batch.framed or #batch.references > 0 or #batch.ranked > 0 or may_start or sooner then WaitingList.wake(queue) end
  start_batch(queue)
end

-- A job with a group is or will be among those that wait.
local function note_group(queue, id, extra, dues)
  if not extra[9] then return end
  Groups.expect(queue)
  GroupSize.note(queue, { id }, { extra[9] }, dues)
end

-- Where a job that has no children goes.
local function enter(queue, i, id, extra)
  local batch = queue.batch
  if extra[4] ~= 0 then Prioritized.expect_priorities(queue) end
  note_group(queue, id, extra, extra[2] > 0 and { extra[2] } or 0)
  if extra[2] > 0 then
    WaitingList.append(batch.delayed, id)
    WaitingList.append(batch.dues, extra[2])
    note_added(queue, 'delayed', i, id, extra[2])
    return
  end
  note_added(queue, 'waiting', i, id)
  if extra[9] then
    WaitingList.append(batch.grouped, id)
    WaitingList.append(batch.groups, extra[9])
    WaitingList.append(batch.group_priorities, extra[4])
  elseif extra[4] ~= 0 then
    WaitingList.append(batch.ranked, extra[4] * Prioritized.PRIORITY_STEP + Prioritized.next_place(queue), id)
  elseif extra[3] == 1 then
    WaitingList.push_front(queue, { id })
    WaitingList.wake(queue)
  else
    batch.references[#batch.references + 1] = id
  end
end

-- Those of children of one parent with one policy are equal.
local function child_fields(family, policy)
  local packed = family.fields[policy]
  if not packed then
    packed = cmsgpack.pack({ pa = { family.of, family.id, policy } })
    family.fields[policy] = packed
  end
  return packed
end

local function join(queue, family, id)
  local keys = family.keys
  keys[#keys + 1] = Parents.child_key(queue, queue.base, id)
end

-- Whether a child of these jobs has this parent, which may be in a queue whose turn comes later.
local function is_in_tree(tree, pa)
  for i = tree.known_families + 1, #tree.families do
    local family = tree.families[i]
    tree.known_parents[family.of .. family.id] = true
  end
  tree.known_families = #tree.families
  return tree.known_parents[pa[1] .. pa[2]]
end

local function is_alive(tree, pa)
  return redis.call('HEXISTS', pa[1] .. 'jobs', pa[2]) == 1 or is_in_tree(tree, pa)
end

-- A job of this id exists: nothing of it changes but who its parent is.
local function link_existing(queue, i, id, policy)
  local tree = queue.call.tree
  if tree.is_parent[i] then adopt(queue, id) end
  local family = family_of(tree, i)
  if not family then return Events.emit_job(queue, 'duplicated', id) end
  local job = Find.locate(queue, id)
  local fields = Locate.detach(queue, job)
  local pa, asked = fields.pa, { family.of, family.id, policy }
  if pa and pa[4] then SiblingRanges.unfold_pending(pa[1], pa[2], Parents.range_of(queue, queue.base, id, pa)) end
  if pa and (pa[1] ~= asked[1] or pa[2] ~= asked[2]) and is_alive(tree, pa) then
    -- its new parent waits on, for a child that it will never hear of, rather than run without it
    return except(tree, i, -7)
  end
  Events.emit_job(queue, 'duplicated', id)
  fields.pa = asked
  redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
  join(queue, family, id)
  if job.state == 'completed' then
    local result = fields.rv or fields.lr and redis.call('HGET', queue.base .. 'large', 'r' .. id)
    Parents.tell_parent(queue, fields.pa, id, 'processed', result or 'null')
  end
end

-- True when the job yields to another one; else it owns its deduplication id.
local function yields(queue, i, id, extra)
  local tree = queue.call.tree
  -- a parent replaces no job, as in BullMQ
  if tree.is_parent[i] then extra[8][4] = 0 end
  local item = { -1, id, tree.names[i], extra[2], extra[3], extra[8], extra[4], extra[9], extra[10] }
  local owner = Deduplication.deduplicate(queue, item, id, tree.args[FIRST_BODY + i], write_batch)
  if owner then
    except(tree, i, owner)
    return true
  end
  return false
end

-- own: state fields that it has whoever is its parent, or nil.
local function park(queue, i, id, extra, family, own)
  local batch = queue.batch
  local pa, fields, parked = family and { family.of, family.id, extra[5] }, batch.fields, batch.parked
  local n, is_root = #fields, not (pa or own) and extra[6] <= 0
  fields[n + 1] = id
  if not is_root then
    own = own or {}
    own.ch, own.d, own.pa = 1, extra[6] > 0 and extra[6] or nil, pa
  end
  fields[n + 2] = is_root and ROOT_FIELDS or cmsgpack.pack(own)
  batch.parents[#batch.parents + 1] = id
  -- its timestamp, behind the head of the body's array
  local _, timestamp = cmsgpack.unpack_one(queue.call.tree.args[FIRST_BODY + i], 1)
  n = #parked
  parked[n + 1], parked[n + 2] = timestamp, id
  note_added(queue, 'waiting-children', i, id)
  -- once it starts it is asked for its priority, and its group
  if extra[4] ~= 0 then Prioritized.expect_priorities(queue) end
  note_group(queue, id, extra, 0)
end

local function add_new(queue, i, id, extra)
  local tree, batch = queue.call.tree, queue.batch
  local own = extra[8] ~= 0 and Deduplication.fields_of(extra[8]) or extra[10] and {} or nil
  if own then Terms.note(queue, id, own, extra[10]) end
  local jobs, family = batch.jobs, family_of(tree, i)
  local n = #jobs
  jobs[n + 1], jobs[n + 2] = id, tree.args[FIRST_BODY + i]
  if family then join(queue, family, id) end
  if tree.is_parent[i] then return park(queue, i, id, extra, family, own) end
  if own then
    own.pa = family and { family.of, family.id, extra[5] } or nil
    WaitingList.append(batch.fields, id, cmsgpack.pack(own))
  elseif family then
    n = #batch.fields
    batch.fields[n + 1], batch.fields[n + 2] = id, child_fields(family, extra[5])
  end
  enter(queue, i, id, extra)
end

local function add_frame(queue, i)
  local tree, batch = queue.call.tree, queue.batch
  -- what stands before it in the waiting list
  if #batch.references > 0 then
    write_batch(queue)
    batch = queue.batch
  end
  tell_added(queue)
  local frame = tree.frames[i]
  local n, first, named_by = frame[1], queue.id + 1, tree.named_by[tree.queues[i]]
  tree.firsts[i], batch.framed = first, true
  queue.id, queue.waiting = queue.id + n, queue.waiting + n
  WaitingList.append_entry(queue, State.entry_id(first, n), 'f', tree.args[FIRST_BODY + i])
  Events.emit(queue, 2 * n, { 'A', first, n, frame[2], named_by })
  for k, parent in ipairs(frame[3]) do
    local family, count = family_under(tree, parent), frame[4][k]
    WaitingList.append(family.ranges, SiblingRanges.name_range(first, count, Parents.child_key(queue, queue.base, named_by)))
    first = first + count
  end
end

local function add_job(queue, i, seen)
  local tree = queue.call.tree
  local extra = tree.extras[i] or NO_EXTRA
  queue.id = queue.id + 1
  local id = tree.ids[i]
  if id == '' then
    id = State.whole(queue.id)
    tree.ids[i] = id
    except(tree, i, id)
  end
  if extra[1] == 1 and (seen[id] or Find.locate(queue, id)) then
    write_batch(queue)
    link_existing(queue, i, id, extra[5])
  elseif extra[8] ~= 0 and yields(queue, i, id, extra) then
    tree.refused[i] = true
  else
    if extra[1] == 1 then seen[id] = true end
    add_new(queue, i, id, extra)
  end
end

local function add_queue(queue, jobs)
  start_batch(queue)
  local seen, frames = {}, queue.call.tree.frames
  for _, i in ipairs(jobs) do
    if frames[i] then add_frame(queue, i) else add_job(queue, i, seen) end
  end
  write_batch(queue)
end

local function count_in(tree, q)
  local n = 0
  for i = 1, #tree.ids do
    if tree.queues[i] == q then n = n + (tree.frames[i] and tree.frames[i][1] or 1) end
  end
  return n
end

local function groups_in(tree, q)
  local groups = {}
  for i = 1, #tree.ids do
    local extra = tree.queues[i] == q and tree.extras[i]
    if extra and extra[9] then groups[#groups + 1] = extra[9] end
  end
  return groups
end

-- Refuses the call as a whole, not half-way, for what it may not do in one of the queues. Gives the answer when one has no room.
local function refuse(queue, tree)
  local full
  for q, of in ipairs(tree.bases) do
    OtherQueues.in_queue(queue, of, function(queue)
      if not full then
        full = queue.max_length > 0 and Length.refuse_beyond(queue, count_in(tree, q)) or GroupSize.refuse_beyond(queue, groups_in(tree, q))
        if full then full[5] = q - 1 end
      end
      AclCheck.require_commands(queue, COMMANDS)
      TypeCheck.require_types_of_waiting(queue)
      TypeCheck.require_type(queue, 'SCARD', 'parents')
      TypeCheck.require_type(queue, 'ZCARD', 'waiting-children')
      queue.is_safe, queue.flows = true, 1
    end)
  end
  return full
end

-- Adds the jobs that are not refused, queue by queue: with roots, those that have no parent among these (1) or the others (0).
local function add_jobs(queue, tree, roots)
  local of_queue = {}
  for i = 1, #tree.ids do
    local parent = tree.parents[i]
    if roots == 0 and parent > 0 then tree.refused[i] = tree.refused[parent] end
    if not tree.refused[i] and (not roots or (parent == 0) == (roots == 1)) then
      local jobs = of_queue[tree.queues[i]] or {}
      of_queue[tree.queues[i]] = jobs
      jobs[#jobs + 1] = i
    end
  end
  for q = 1, #tree.bases do
    if of_queue[q] then OtherQueues.in_queue(queue, tree.bases[q], function(queue) add_queue(queue, of_queue[q]) end) end
  end
end

local function add_all(queue, tree)
  -- of a root that yields to a job that exists nothing below it is added
  if tree.yielding then add_jobs(queue, tree, 1) end
  add_jobs(queue, tree, tree.yielding and 0)
  for _, family in ipairs(tree.families) do
    WaitingList.call_in_chunks('SADD', family.of .. 'children:' .. family.id, family.keys)
    WaitingList.call_in_chunks('SADD', family.of .. 'spans:' .. family.id, family.ranges)
  end
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, plan = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local tree = read_tree(plan, args)
  queue.call.tree = tree
  local full = refuse(queue, tree)
  if full then return full end
  check(queue, tree)
  add_all(queue, tree)
  Parents.settle_parents(queue, now_ms)
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  local reply = { tree.exceptions, {} }
  for i = 1, #tree.ids do reply[2][#reply[2] + 1] = tree.firsts[i] end
  Memo.remember(base, client, slot, number, reply)
  return reply
end
