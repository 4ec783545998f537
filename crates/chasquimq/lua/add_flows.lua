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
local base = KEYS[1]
local now_ms, client, slot, number, plan = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]
local FIRST_BODY = 5

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/length
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/dedup
-- @include lib/parents
-- @include lib/allowed
-- @include lib/kinds

local bases, queues, ids, names, parents, extras, named_by, frames
do
  local columns = cmsgpack.unpack(plan)
  bases, queues, ids, names, parents, extras = columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]
  named_by, frames = columns[7], columns[8]
end

local exceptions, refused, is_parent, firsts = {}, {}, {}, {}
-- What each parent gets: of (its base), id, keys (of children), spans (lib/spans), vitals (packed, of its children by policy). A parent has two names where
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
    found = { of = outer and outer[1] or bases[queues[parent]], id = outer and outer[2] or ids[parent], keys = {}, spans = {}, vitals = {} }
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
local function adopt(id)
  local job = locate(id)
  if not job then return false end
  local vitals = detach(job)
  S.flows = 1
  if not vitals.ch then
    vitals.ch = 1
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
    redis.call('SADD', base .. 'parents', id)
  end
  return true
end

-- Says of each job whether it may be added, and is a parent. Nothing is written before that but what `adopt` writes.
local function check()
  for i = 1, #ids do
    local parent, extra, frame = parents[i], extras[i], frames[i]
    if frame then
      for _, index in ipairs(frame[3]) do is_parent[index] = true end
    elseif parent > 0 then
      is_parent[parent] = true
      refused[i] = refused[parent]
    elseif extra and extra[7] ~= 0 then
      if not in_queue(extra[7][1], function() return adopt(extra[7][2]) end) then
        refused[i] = true
        except(i, -5)
      end
    end
  end
end

-- What a queue's jobs have in common until they are written.
local B

local function start_batch()
  B = { jobs = {}, vitals = {}, references = {}, ranked = {}, delayed = {}, dues = {}, parked = {}, parents = {},
    event = nil, ids = {}, names = {}, event_dues = {} }
end

local function tell_added()
  local n = #B.ids
  if n == 0 then return end
  emit(2 * n, { 'B', B.ids, n, B.names, B.event, B.event == 'delayed' and B.event_dues or nil })
  B.ids, B.names, B.event_dues = {}, {}, {}
end

local function note_added(event, i, id, due_ms)
  if B.event ~= event then
    tell_added()
    B.event = event
  end
  local n = #B.ids + 1
  B.ids[n], B.names[n], B.event_dues[n] = id, names[i], due_ms
end

local function write_batch()
  tell_added()
  call_in_chunks('HSET', base .. 'jobs', B.jobs)
  call_in_chunks('HSET', base .. 'vitals', B.vitals)
  call_in_chunks('SADD', base .. 'parents', B.parents)
  call_in_chunks('ZADD', base .. 'waiting-children', B.parked)
  call_in_chunks('ZADD', base .. 'prioritized', B.ranked)
  if #B.references > 0 then append_references(B.references) end
  local sooner = #B.delayed > 0 and delay_jobs(B.delayed, B.dues)
  if B.framed or #B.references > 0 or #B.ranked > 0 or sooner then wake() end
  start_batch()
end

-- Where a job that has no children goes.
local function enter(i, id, extra)
  if extra[4] ~= 0 then expect_priorities() end
  if extra[2] > 0 then
    append(B.delayed, id)
    append(B.dues, extra[2])
    note_added('delayed', i, id, extra[2])
    return
  end
  note_added('waiting', i, id)
  if extra[4] ~= 0 then
    append(B.ranked, extra[4] * PRIORITY_STEP + next_place(), id)
  elseif extra[3] == 1 then
    push_front({ id })
    wake()
  else
    B.references[#B.references + 1] = id
  end
end

-- Those of children of one parent with one policy are equal.
local function child_vitals(family, policy)
  local packed = family.vitals[policy]
  if not packed then
    packed = cmsgpack.pack({ pa = { family.of, family.id, policy } })
    family.vitals[policy] = packed
  end
  return packed
end

local function join(family, id)
  local keys = family.keys
  keys[#keys + 1] = child_key(base, id)
end

local function is_alive(pa)
  return redis.call('HEXISTS', pa[1] .. 'jobs', pa[2]) == 1
end

-- A job of this id exists: nothing of it changes but who its parent is.
local function link_existing(i, id, policy)
  emit_job('duplicated', id)
  if is_parent[i] then adopt(id) end
  local family = family_of(i)
  if not family then return end
  local job = locate(id)
  local vitals = detach(job)
  local pa, asked = vitals.pa, { family.of, family.id, policy }
  if pa and pa[4] then unfold_pending(pa[1], pa[2], span_of(base, id, pa)) end
  if pa and (pa[1] ~= asked[1] or pa[2] ~= asked[2]) and is_alive(pa) then
    except(i, -7)
    news_of(asked).asks = true
    return
  end
  vitals.pa = asked
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
  join(family, id)
  if job.state == 'completed' then
    local result = vitals.rv or vitals.lr and redis.call('HGET', base .. 'large', 'r' .. id)
    tell_parent(vitals.pa, id, 'processed', result or 'null')
  end
end

local NO_EXTRA = { 0, 0, 0, 0, '', 0, 0, 0 }

-- True when the job yields to another one.
local function yields(i, id, extra)
  local item = { -1, id, names[i], extra[2], extra[3], extra[8], extra[4] }
  local owner = deduplicate(item, id, ARGV[FIRST_BODY + i], write_batch)
  if owner then
    except(i, owner)
    return true
  end
  append(B.vitals, id, cmsgpack.pack({ di = extra[8][1] }))
  return false
end

local function add_new(i, id, extra)
  if extra[8] ~= 0 and yields(i, id, extra) then return end
  local jobs, family = B.jobs, family_of(i)
  local n = #jobs
  jobs[n + 1], jobs[n + 2] = id, ARGV[FIRST_BODY + i]
  if family then join(family, id) end
  if is_parent[i] then
    local pa = family and { family.of, family.id, extra[5] }
    append(B.vitals, id, cmsgpack.pack({ ch = 1, d = extra[6] > 0 and extra[6] or nil, pa = pa }))
    append(B.parents, id)
    -- its timestamp, behind the head of the body's array
    local _, timestamp = cmsgpack.unpack_one(ARGV[FIRST_BODY + i], 1)
    append(B.parked, timestamp, id)
    note_added('waiting-children', i, id)
    -- once it starts it is asked for its priority
    if extra[4] ~= 0 then expect_priorities() end
    return
  end
  if family then
    local vitals = B.vitals
    n = #vitals
    vitals[n + 1], vitals[n + 2] = id, child_vitals(family, extra[5])
  end
  enter(i, id, extra)
end

local function add_frame(i)
  -- what stands before it in line
  if #B.references > 0 then write_batch() end
  tell_added()
  local n, first = frames[i][1], S.id + 1
  firsts[i], B.framed = first, true
  S.id, S.waiting = S.id + n, S.waiting + n
  redis.call('XADD', base .. 'log', entry_id(first, n), 'f', ARGV[FIRST_BODY + i])
  emit(2 * n, { 'A', first, n, frames[i][2], named_by })
  for k, parent in ipairs(frames[i][3]) do
    local family, count = family_under(parent), frames[i][4][k]
    append(family.spans, name_span(first, count, child_key(base, named_by)))
    first = first + count
  end
end

local function add_job(i, seen)
  local extra = extras[i] or NO_EXTRA
  S.id = S.id + 1
  local id = ids[i]
  if id == '' then
    id = whole(S.id)
    ids[i] = id
    except(i, id)
  end
  if extra[1] == 1 and (seen[id] or locate(id)) then
    write_batch()
    link_existing(i, id, extra[5])
  else
    if extra[1] == 1 then seen[id] = true end
    add_new(i, id, extra)
  end
end

local function add_queue(jobs)
  start_batch()
  local seen = {}
  for _, i in ipairs(jobs) do
    if frames[i] then add_frame(i) else add_job(i, seen) end
  end
  write_batch()
end

-- @cold
local function count_in(q)
  local n = 0
  for i = 1, #ids do
    if queues[i] == q then n = n + (frames[i] and frames[i][1] or 1) end
  end
  return n
end
-- @warm

local full
for q, of in ipairs(bases) do
  in_queue(of, function()
    if S.max_length > 0 and not full then
      full = refuse_beyond(count_in(q))
      if full then full[5] = q - 1 end
    end
    require_commands({ 'SET', 'XADD', 'ZADD', 'HSET', 'SADD', 'LPUSH', 'RPUSH', 'LPOP', 'XTRIM' })
    require_kinds_of_line()
    require_kind('SCARD', 'parents')
    require_kind('ZCARD', 'waiting-children')
    S.is_safe, S.flows = true, 1
  end)
end
if full then return full end
check()
local of_queue = {}
for i = 1, #ids do
  if not refused[i] then
    local jobs = of_queue[queues[i]] or {}
    of_queue[queues[i]] = jobs
    jobs[#jobs + 1] = i
  end
end
for q = 1, #bases do
  if of_queue[q] then in_queue(bases[q], function() add_queue(of_queue[q]) end) end
end
for _, family in ipairs(families) do
  call_in_chunks('SADD', family.of .. 'children:' .. family.id, family.keys)
  call_in_chunks('SADD', family.of .. 'spans:' .. family.id, family.spans)
end
settle_parents(now_ms)
flush_visited(now_ms)
flush_events(now_ms)
local reply = { exceptions, {} }
for i = 1, #ids do reply[2][#reply[2] + 1] = firsts[i] end
remember(client, slot, number, reply)
return reply
