-- parents: jobs that wait for others, their children, which may lie in other queues. A parent is a record whose state fields hold ch (1); the
-- state fields of its children hold pa {base of the parent's queue, its id, policy, and of those that are or were in a frame the number of the
-- first, and how many, of its range (jobs/sibling_ranges)}. The policy is what the child's failure does: f fails the
-- parent, c starts it, i counts the child as done, r forgets the child, '' nothing.
-- The step that ends the last child starts its parent: it tells of the child here (tell_parent, tell_range, tell_failure), and settle_parents calls
-- start_parents. So does whatever removes the last child.
--   parents         ids of all parents
--   children:<id>   set of the children that the parent waits for, by key: <qualified name of their queue>:<their id>
--   processed:<id>  hash, key of a child that completed -> its return value (JSON text)
--   ignored:<id>    hash, key of a child that failed (c, i) -> why
--   faults:<id>     sorted set of the keys of children that failed (f), by time
local Delayed = require('delayed')
local Events = require('events')
local Groups = require('groups')
local Names = require('names')
local OtherQueues = require('other_queues')
local Prioritized = require('prioritized')
local Records = require('records')
local SiblingRanges = require('sibling_ranges')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local ERROR_PENDING_CHILDREN, ERROR_FAILED_CHILDREN = -4, -9

-- What the keys of a queue's children start with is the name that users see.
local function child_key(queue, of, id)
  local start = queue.call.key_starts[of]
  if not start then
    start = Names.name_of(of) .. ':'
    queue.call.key_starts[of] = start
  end
  return start .. id
end

-- The range of a child of this id in a queue.
local function range_of(queue, of, id, pa)
  return SiblingRanges.name_range(pa[4], pa[5], child_key(queue, of, id:sub(1, -13)))
end

-- Of a call: news, what happened to the children of each parent since it was settled last: base -> {ids, of}, of: id -> {keys, processed, ignored,
-- faults, ranges, unfolds, starts, cuts, cut}; keys of all; the next three in pairs {key, value, ...}; ranges, of which all completed, in
-- pairs {range, values, ...}; unfolds: ranges of single children; starts: whatever is pending; cuts: which of the
-- keys are of children that were removed; cut: the parent waited for one of those, and goes to the head of the waiting list, whatever its own
-- options.
-- by_turn: what starts at home is looked after by step/round_trip.
local function news_of(queue, pa)
  local told = queue.call.news[pa[1]]
  if not told then
    told = { ids = {}, of = {} }
    queue.call.news[pa[1]] = told
    queue.call.news_bases[#queue.call.news_bases + 1] = pa[1]
  end
  local of = told.of[pa[2]]
  if not of then
    -- of one that is settled there may be more to tell
    if of == nil then told.ids[#told.ids + 1] = pa[2] end
    of = { keys = {}, processed = {}, ignored = {}, faults = {}, ranges = {}, unfolds = {} }
    told.of[pa[2]] = of
  end
  return of
end

-- A child of this queue completed, failed (with a policy that tells its parent), or is dropped (no list).
local function tell_parent(queue, pa, id, list, value)
  local of, key = news_of(queue, pa), child_key(queue, queue.base, id)
  of.keys[#of.keys + 1] = key
  if pa[4] then of.unfolds[range_of(queue, queue.base, id, pa)] = true end
  if list then
    local n, pairs_of = #of[list], of[list]
    pairs_of[n + 1], pairs_of[n + 2] = key, value
  end
end

-- All children of a range of this queue completed. ids: what theirs begin with.
local function tell_range(queue, pa, ids, values)
  local ranges = news_of(queue, pa).ranges
  local n = #ranges
  ranges[n + 1], ranges[n + 2] = SiblingRanges.name_range(pa[4], pa[5], child_key(queue, queue.base, ids)), values
end

-- A child is removed.
local function remove_dependency(queue, of, pa, id)
  local known = news_of(queue, pa)
  if pa[4] then known.unfolds[range_of(queue, of, id, pa)] = true end
  local n = #known.keys + 1
  known.keys[n] = child_key(queue, of, id)
  known.cuts = known.cuts or {}
  known.cuts[n] = true
end

-- A child of this queue has failed for good; dropped: it is not kept.
local function tell_failure(queue, pa, id, reason, dropped)
  local policy = pa[3]
  if policy == 'f' then
    tell_parent(queue, pa, id, 'faults', '')
  elseif policy == 'c' or policy == 'i' then
    tell_parent(queue, pa, id, 'ignored', reason)
    if policy == 'c' then news_of(queue, pa).starts = true end
  elseif policy == 'r' then
    tell_parent(queue, pa, id)
  elseif dropped then
    remove_dependency(queue, queue.base, pa, id)
  end
end

local function reverse(list)
  for i = 1, #list / 2 do list[i], list[#list + 1 - i] = list[#list + 1 - i], list[i] end
end

-- Parents leave their place for the waiting list: its head, their priority, or the delayed jobs. parents: {id, fields, cut} in order.
local function start_parents(queue, parents, now_ms, silent)
  local ids, front, delayed, dues = {}, {}, {}, {}
  for _, parent in ipairs(parents) do
    local id, fields, cut = parent[1], parent[2], parent[3]
    if cut then
      front[#front + 1] = id
    elseif (fields.d or 0) > 0 then
      delayed[#delayed + 1], dues[#dues + 1] = id, now_ms + fields.d
    else
      ids[#ids + 1] = id
    end
  end
  if #delayed > 0 then Delayed.delay_jobs(queue, delayed, dues) end
  for i, id in ipairs(delayed) do Events.emit_job(queue, 'delayed', id, nil, 'delay', State.whole(dues[i])) end
  for _, list in ipairs(silent and {} or { ids, front }) do
    for _, id in ipairs(list) do Events.emit_job(queue, 'waiting', id, 'waiting-children') end
  end
  -- the last of them heads the waiting list
  Prioritized.enter_latest(queue, ids)
  reverse(front)
  WaitingList.push_front(queue, Groups.enter_own(queue, front, true))
  if #delayed > 0 or (#ids + #front > 0 and (queue ~= queue.call.home or not queue.call.by_turn)) then WaitingList.wake(queue) end
end

-- The pairs {key, value, ...} whose keys are in the set.
local function known_pairs(pairs_of, is_known)
  local some = {}
  for i = 1, #pairs_of, 2 do
    if is_known[pairs_of[i]] then WaitingList.append(some, pairs_of[i], pairs_of[i + 1]) end
  end
  return some
end

-- The children told of that a parent waits for; the others are forgotten.
local function keep_pending(of, found)
  local keys, is_known = {}, {}
  for i, key in ipairs(of.keys) do
    if found[i] == 1 then
      keys[#keys + 1] = key
      is_known[key] = true
    end
  end
  of.keys = keys
  for _, list in ipairs({ 'processed', 'ignored', 'faults' }) do of[list] = known_pairs(of[list], is_known) end
end

-- Takes the ranges told of out of those that the parent waits for; of one that was unfolded since, its children.
local function take_ranges(queue, id, of)
  local given = {}
  for i = 1, #of.ranges, 2 do
    local range, values = of.ranges[i], of.ranges[i + 1]
    if redis.call('SREM', queue.base .. 'spans:' .. id, range) == 1 then
      WaitingList.append(given, range, values)
    else
      for k, value in ipairs(SiblingRanges.pairs_in_range(range, values)) do
        of.processed[#of.processed + 1] = value
        if k % 2 == 1 then of.keys[#of.keys + 1] = value end
      end
    end
  end
  WaitingList.call_in_chunks('HSET', queue.base .. 'returned:' .. id, given)
end

-- Whether a child that was removed had not ended before.
local function is_cut(of, found)
  local seen = {}
  for i, key in ipairs(of.keys) do
    if of.cuts[i] and found[i] == 1 and not seen[key] then return true end
    seen[key] = true
  end
  return false
end

local function waits(queue, id)
  return redis.call('EXISTS', queue.base .. 'children:' .. id, queue.base .. 'spans:' .. id) > 0
end

-- Takes the children told of out of those that the parent waits for.
local function take_pending(queue, id, of)
  local pending, found, are_all = queue.base .. 'children:' .. id, {}, true
  for from = 1, #of.keys, 4000 do
    for i, is_pending in ipairs(redis.call('SMISMEMBER', pending, unpack(of.keys, from, math.min(from + 3999, #of.keys)))) do
      found[from + i - 1] = is_pending
      are_all = are_all and is_pending == 1
    end
  end
  if of.cuts then of.cut = is_cut(of, found) end
  if not are_all then keep_pending(of, found) end
  WaitingList.call_in_chunks('SREM', pending, of.keys)
end

-- A child with the policy f failed. Gives whether the parent starts, only to fail.
local function fail_parent(queue, id, fields, faults, now_ms)
  local args = {}
  for i = 1, #faults, 2 do WaitingList.append(args, now_ms, faults[i]) end
  WaitingList.call_in_chunks('ZADD', queue.base .. 'faults:' .. id, args)
  if fields.fo and redis.call('ZSCORE', queue.base .. 'failed', id) then return false end
  fields.df = 'child ' .. faults[#faults - 1] .. ' failed'
  redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
  -- it fails when somebody has it tried again
  if fields.fo then return false end
  if redis.call('ZREM', queue.base .. 'delayed', id) == 0 then return true end
  start_parents(queue, { { id, {} } }, now_ms)
  return false
end

-- Records what happened to one parent's children. Gives whether it may start.
local function settle_parent(queue, id, of, fields, now_ms)
  for range in pairs(of.unfolds) do SiblingRanges.unfold_pending(queue.base, id, range) end
  take_ranges(queue, id, of)
  if #of.keys > 0 then take_pending(queue, id, of) end
  -- one that is parked though it waits for nothing has lost what it waited for
  if #of.keys == 0 then return not waits(queue, id) end
  WaitingList.call_in_chunks('HSET', queue.base .. 'processed:' .. id, of.processed)
  WaitingList.call_in_chunks('HSET', queue.base .. 'ignored:' .. id, of.ignored)
  local fails = #of.faults > 0 and fail_parent(queue, id, fields, of.faults, now_ms)
  return fails or of.starts or not waits(queue, id)
end

-- The parents of this queue that may start, of which the children were told: {id, fields, cut}.
local function ready_parents(queue, told, now_ms)
  local ready = {}
  for from = 1, #told.ids, 1000 do
    local to = math.min(from + 999, #told.ids)
    for i, raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(told.ids, from, to))) do
      local id = told.ids[from + i - 1]
      -- one that is gone wants to know nothing
      local fields = raw and told.of[id] and raw:find('\162ch', 1, true) and Stored.fields(raw)
      if fields and fields.ch and settle_parent(queue, id, told.of[id], fields, now_ms) then
        ready[#ready + 1] = { id, fields, told.of[id].cut }
      end
    end
  end
  return ready
end

-- Settles what was told of the children of this queue's parents: those that were parked start, or go (bulk, at home). The one told of
-- last heads the waiting list; bulk: first.
local function settle_queue(queue, told, now_ms, bulk)
  local started, ids = {}, {}
  for _, parent in ipairs(ready_parents(queue, told, now_ms)) do
    if redis.call('ZREM', queue.base .. 'waiting-children', parent[1]) == 1 then
      started[#started + 1] = parent
      ids[#ids + 1] = parent[1]
    end
  end
  if #started == 0 then return end
  if bulk and queue == queue.call.home then
    Records.drop_records(queue, ids)
  else
    if bulk then reverse(started) end
    start_parents(queue, started, now_ms, bulk)
  end
end

-- Settles what was told, each parent at once. bulk: many jobs were removed, as BullMQ removes
-- many: a parent of this queue that waits for nothing more goes too, one of another queue starts, and nothing is told of it.
local function settle_parents(queue, now_ms, bulk)
  local bases, told = queue.call.news_bases, queue.call.news
  queue.call.news, queue.call.news_bases = {}, {}
  for _, of in ipairs(bases) do OtherQueues.in_queue(queue, of, function(queue) settle_queue(queue, told[of], now_ms, bulk) end) end
end

-- Notes which children were removed since.
local function cut_removed(queue)
  local left = queue.call.left_parents
  queue.call.left_parents = {}
  for _, child in ipairs(left) do remove_dependency(queue, child[1], child[2], child[3]) end
end

-- Tells the parents of many jobs that were removed.
local function settle_removed(queue, now_ms)
  -- a parent that goes may have had a parent
  while #queue.call.left_parents > 0 do
    cut_removed(queue)
    settle_parents(queue, now_ms, true)
  end
end

-- Records what was told of the children of one parent, which asks to complete: it is active, or was moved since and starts. What was told of others is
-- settled once all that they are is written.
local function settle_one(queue, id, now_ms)
  local told = queue.call.news[queue.base]
  local of = told and told.of[id]
  if not of then return end
  told.of[id] = false
  local raw = redis.call('HGET', queue.base .. 'vitals', id)
  local fields = raw and Stored.fields(raw)
  local is_ready = fields and settle_parent(queue, id, of, fields, now_ms)
  if is_ready and redis.call('ZREM', queue.base .. 'waiting-children', id) == 1 then start_parents(queue, { { id, fields, of.cut } }, now_ms) end
end

-- Why a parent must not complete now; nil when it may.
local function children_code(queue, id, now_ms)
  settle_one(queue, id, now_ms)
  if waits(queue, id) then return ERROR_PENDING_CHILDREN end
  return redis.call('EXISTS', queue.base .. 'faults:' .. id) == 1 and ERROR_FAILED_CHILDREN or nil
end

-- A child of this queue that ended is tried again: its parent waits for it, but is not parked for it.
local function wait_again(queue, pa, id, state)
  local of, parent, key, count = pa[1], pa[2], child_key(queue, queue.base, id), nil
  if state == 'completed' then
    if pa[4] then SiblingRanges.unfold_returned(of, parent, range_of(queue, queue.base, id, pa)) end
    count = redis.call('HDEL', of .. 'processed:' .. parent, key)
  else
    count = redis.call('ZREM', of .. 'faults:' .. parent, key) + redis.call('HDEL', of .. 'ignored:' .. parent, key)
  end
  -- what is counted there belongs to a parent that exists
  if count > 0 then redis.call('SADD', of .. 'children:' .. parent, key) end
end

return {
  ERROR_PENDING_CHILDREN = ERROR_PENDING_CHILDREN,
  child_key = child_key,
  range_of = range_of,
  news_of = news_of,
  tell_parent = tell_parent,
  tell_range = tell_range,
  remove_dependency = remove_dependency,
  tell_failure = tell_failure,
  reverse = reverse,
  settle_parents = settle_parents,
  cut_removed = cut_removed,
  settle_removed = settle_removed,
  children_code = children_code,
  wait_again = wait_again,
}
