-- add_flows: new -> waiting | prioritized | delayed | waiting-children, for trees of parents and children in any number of queues, and for
-- children of parents that exist, all at once, once however often it is sent.
-- KEYS    base (also, of this and of the other queues: state meta log front takes frames holes runs jobs vitals large traces prioritized delayed
--         delays active completed failed waiting-children events trims wake parents children:<id> spans:<id> processed:<id> logged logs:<id>
--         de:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, plan (MessagePack: bases, queues, ids, names, parents, extras, named_by, frames), then a
--         body a job
--         columns, of jobs that stand behind their parents: queues (index of a base a job), ids ('' = its number), names, parents (index of
--         a job; 0 = none)
--         extras, of some jobs, by their index: {is_given (1|0: the id may exist), due_ms (0 = at once), front (1|0), priority (0 = none),
--         policy (lib/parents), delay_ms (of a parent, once it starts), parent ({base, id} that exists, or 0), dedup (lib/dedup, or 0)}
--         frames: what stands in the place of a job and is a frame of children, by its index: {n (jobs), names (one text, or one a job),
--         parents (indexes of jobs that are not refused), how many children each of them has here}; its body is its blob, and named_by
--         what the ids of its jobs begin with (lib/frame)
-- RETURNS {{index, id | -5 | -7, ...} of each job whose id is not the one that was sent, {first number of each frame, ...}} |
--         {-12, n, length, max_length, index of the base} (lib/length)
-- ERRORS  -12 full, -5 missing parent (the job and those below it are not added), -7 it has another parent      EVENTS added, waiting, delayed,
--         waiting-children, duplicated, deduplicated, removed      COST O(jobs * log(delayed + prioritized + waiting-children))
-- SOURCE  BullMQ 6.7 FlowProducer#add, #addBulk, Queue#add with a parent (differs: what is refused is left out with all below it)
local Allowed = require('allowed')
local Dedup = require('dedup')
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local Kinds = require('kinds')
local Length = require('length')
local Line = require('line')
local Locate = require('locate')
local Memo = require('memo')
local Parents = require('parents')
local Priority = require('priority')
local Spans = require('spans')
local State = require('state')
local Visit = require('visit')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, plan = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local FIRST_BODY = 5

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local bases, queues, ids, names, parents, extras, named_by, frames
  do
    local columns = cmsgpack.unpack(plan)
    bases, queues, ids, names, parents, extras = columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]
    named_by, frames = columns[7], columns[8]
  end

  local exceptions, refused, is_parent, firsts = {}, {}, {}, {}
  -- What each parent gets: of (its base), id, keys (of children), spans (lib/spans), fields (packed state fields, of its children by policy). A parent has two names where
  -- it is both of these jobs and one that exists.
  local families, family_by = {}, {}

  local function except(i, id)
    exceptions[#exceptions + 1] = i - 1
    exceptions[#exceptions + 1] = id
  end

  -- The family of this parent: a job of these, or {base, id} of one that exists.
  local function family_under(parent, outer)
    local name = outer and outer[1] .. outer[2] or parent
    local found = family_by[name]
    if not found then
      found = { of = outer and outer[1] or bases[queues[parent]], id = outer and outer[2] or ids[parent], keys = {}, spans = {}, fields = {} }
      family_by[name] = found
      families[#families + 1] = found
    end
    return found
  end

  -- The family that a job is a child in; nil when it has no parent.
  local function family_of(i)
    local parent, extra = parents[i], extras[i]
    local outer = extra and extra[7] ~= 0 and extra[7]
    if parent == 0 and not outer then return nil end
    return family_under(parent, outer)
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
  local function check(queue)
    for i = 1, #ids do
      local parent, extra, frame = parents[i], extras[i], frames[i]
      if frame then
        for _, index in ipairs(frame[3]) do is_parent[index] = true end
      elseif parent > 0 then
        is_parent[parent] = true
        refused[i] = refused[parent]
      elseif extra and extra[7] ~= 0 then
        if not Visit.in_queue(queue, extra[7][1], function(queue) return adopt(queue, extra[7][2]) end) then
          refused[i] = true
          except(i, -5)
        end
      end
    end
  end

  -- What a queue's jobs have in common until they are written.
  local B

  local function start_batch()
    B = { jobs = {}, fields = {}, references = {}, ranked = {}, delayed = {}, dues = {}, parked = {}, parents = {},
      event = nil, ids = {}, names = {}, event_dues = {} }
  end

  local function tell_added(queue)
    local n = #B.ids
    if n == 0 then return end
    Events.emit(queue, 2 * n, { 'B', B.ids, n, B.names, B.event, B.event == 'delayed' and B.event_dues or nil })
    B.ids, B.names, B.event_dues = {}, {}, {}
  end

  local function note_added(queue, event, i, id, due_ms)
    if B.event ~= event then
      tell_added(queue)
      B.event = event
    end
    local n = #B.ids + 1
    B.ids[n], B.names[n], B.event_dues[n] = id, names[i], due_ms
  end

  local function write_batch(queue)
    tell_added(queue)
    Line.call_in_chunks('HSET', queue.base .. 'jobs', B.jobs)
    Line.call_in_chunks('HSET', queue.base .. 'vitals', B.fields)
    Line.call_in_chunks('SADD', queue.base .. 'parents', B.parents)
    Line.call_in_chunks('ZADD', queue.base .. 'waiting-children', B.parked)
    Line.call_in_chunks('ZADD', queue.base .. 'prioritized', B.ranked)
    if #B.references > 0 then Line.append_references(queue, B.references) end
    local sooner = #B.delayed > 0 and Delayed.delay_jobs(queue, B.delayed, B.dues)
    if B.framed or #B.references > 0 or #B.ranked > 0 or sooner then Line.wake(queue) end
    start_batch()
  end

  -- Where a job that has no children goes.
  local function enter(queue, i, id, extra)
    if extra[4] ~= 0 then Priority.expect_priorities(queue) end
    if extra[2] > 0 then
      Line.append(B.delayed, id)
      Line.append(B.dues, extra[2])
      note_added(queue, 'delayed', i, id, extra[2])
      return
    end
    note_added(queue, 'waiting', i, id)
    if extra[4] ~= 0 then
      Line.append(B.ranked, extra[4] * Priority.PRIORITY_STEP + Priority.next_place(queue), id)
    elseif extra[3] == 1 then
      Line.push_front(queue, { id })
      Line.wake(queue)
    else
      B.references[#B.references + 1] = id
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

  local function is_alive(pa)
    return redis.call('HEXISTS', pa[1] .. 'jobs', pa[2]) == 1
  end

  -- A job of this id exists: nothing of it changes but who its parent is.
  local function link_existing(queue, i, id, policy)
    Events.emit_job(queue, 'duplicated', id)
    if is_parent[i] then adopt(queue, id) end
    local family = family_of(i)
    if not family then return end
    local job = Find.locate(queue, id)
    local fields = Locate.detach(queue, job)
    local pa, asked = fields.pa, { family.of, family.id, policy }
    if pa and pa[4] then Spans.unfold_pending(pa[1], pa[2], Parents.span_of(queue, queue.base, id, pa)) end
    if pa and (pa[1] ~= asked[1] or pa[2] ~= asked[2]) and is_alive(pa) then
      except(i, -7)
      Parents.news_of(queue, asked).asks = true
      return
    end
    fields.pa = asked
    redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
    join(queue, family, id)
    if job.state == 'completed' then
      local result = fields.rv or fields.lr and redis.call('HGET', queue.base .. 'large', 'r' .. id)
      Parents.tell_parent(queue, fields.pa, id, 'processed', result or 'null')
    end
  end

  local NO_EXTRA = { 0, 0, 0, 0, '', 0, 0, 0 }

  -- True when the job yields to another one.
  local function yields(queue, i, id, extra)
    local item = { -1, id, names[i], extra[2], extra[3], extra[8], extra[4] }
    local owner = Dedup.deduplicate(queue, item, id, args[FIRST_BODY + i], write_batch)
    if owner then
      except(i, owner)
      return true
    end
    Line.append(B.fields, id, cmsgpack.pack({ di = extra[8][1] }))
    return false
  end

  local function add_new(queue, i, id, extra)
    if extra[8] ~= 0 and yields(queue, i, id, extra) then return end
    local jobs, family = B.jobs, family_of(i)
    local n = #jobs
    jobs[n + 1], jobs[n + 2] = id, args[FIRST_BODY + i]
    if family then join(queue, family, id) end
    if is_parent[i] then
      local pa = family and { family.of, family.id, extra[5] }
      Line.append(B.fields, id, cmsgpack.pack({ ch = 1, d = extra[6] > 0 and extra[6] or nil, pa = pa }))
      Line.append(B.parents, id)
      -- its timestamp, behind the head of the body's array
      local _, timestamp = cmsgpack.unpack_one(args[FIRST_BODY + i], 1)
      Line.append(B.parked, timestamp, id)
      note_added(queue, 'waiting-children', i, id)
      -- once it starts it is asked for its priority
      if extra[4] ~= 0 then Priority.expect_priorities(queue) end
      return
    end
    if family then
      local fields = B.fields
      n = #fields
      fields[n + 1], fields[n + 2] = id, child_fields(family, extra[5])
    end
    enter(queue, i, id, extra)
  end

  local function add_frame(queue, i)
    -- what stands before it in line
    if #B.references > 0 then write_batch(queue) end
    tell_added(queue)
    local n, first = frames[i][1], queue.id + 1
    firsts[i], B.framed = first, true
    queue.id, queue.waiting = queue.id + n, queue.waiting + n
    redis.call('XADD', queue.base .. 'log', State.entry_id(first, n), 'f', args[FIRST_BODY + i])
    Events.emit(queue, 2 * n, { 'A', first, n, frames[i][2], named_by })
    for k, parent in ipairs(frames[i][3]) do
      local family, count = family_under(parent), frames[i][4][k]
      Line.append(family.spans, Spans.name_span(first, count, Parents.child_key(queue, queue.base, named_by)))
      first = first + count
    end
  end

  local function add_job(queue, i, seen)
    local extra = extras[i] or NO_EXTRA
    queue.id = queue.id + 1
    local id = ids[i]
    if id == '' then
      id = State.whole(queue.id)
      ids[i] = id
      except(i, id)
    end
    if extra[1] == 1 and (seen[id] or Find.locate(queue, id)) then
      write_batch(queue)
      link_existing(queue, i, id, extra[5])
    else
      if extra[1] == 1 then seen[id] = true end
      add_new(queue, i, id, extra)
    end
  end

  local function add_queue(queue, jobs)
    start_batch()
    local seen = {}
    for _, i in ipairs(jobs) do
      if frames[i] then add_frame(queue, i) else add_job(queue, i, seen) end
    end
    write_batch(queue)
  end

  local function count_in(q)
    local n = 0
    for i = 1, #ids do
      if queues[i] == q then n = n + (frames[i] and frames[i][1] or 1) end
    end
    return n
  end

  local full
  for q, of in ipairs(bases) do
    Visit.in_queue(queue, of, function(queue)
      if queue.max_length > 0 and not full then
        full = Length.refuse_beyond(queue, count_in(q))
        if full then full[5] = q - 1 end
      end
      Allowed.require_commands(queue, { 'SET', 'XADD', 'ZADD', 'HSET', 'SADD', 'LPUSH', 'RPUSH', 'LPOP', 'XTRIM' })
      Kinds.require_kinds_of_line(queue)
      Kinds.require_kind(queue, 'SCARD', 'parents')
      Kinds.require_kind(queue, 'ZCARD', 'waiting-children')
      queue.is_safe, queue.flows = true, 1
    end)
  end
  if full then return full end
  check(queue)
  local of_queue = {}
  for i = 1, #ids do
    if not refused[i] then
      local jobs = of_queue[queues[i]] or {}
      of_queue[queues[i]] = jobs
      jobs[#jobs + 1] = i
    end
  end
  for q = 1, #bases do
    if of_queue[q] then Visit.in_queue(queue, bases[q], function(queue) add_queue(queue, of_queue[q]) end) end
  end
  for _, family in ipairs(families) do
    Line.call_in_chunks('SADD', family.of .. 'children:' .. family.id, family.keys)
    Line.call_in_chunks('SADD', family.of .. 'spans:' .. family.id, family.spans)
  end
  Parents.settle_parents(queue, now_ms)
  Visit.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  local reply = { exceptions, {} }
  for i = 1, #ids do reply[2][#reply[2] + 1] = firsts[i] end
  Memo.remember(base, client, slot, number, reply)
  return reply
end
