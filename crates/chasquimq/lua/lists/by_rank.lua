-- by_rank: walks a state's jobs by rank, as BullMQ ranks them, a bounded step at a time. Ascending: waiting in processing order, sets by
-- score; those of groups behind the others, as they came. What lies nearer the other end is reached from there, and comes in reverse; far from both, a walk may begin at its jobs
-- (lists/rank_in_log). Active jobs lie in no order (states/active).
-- A walk is a table that the next step goes on with: state, back (from the far end), turn (its jobs come in the reverse of the order
-- asked for), skip (jobs to pass over), take (jobs to give), at (elements of a list or set that were passed), in_groups (the same of grouped jobs), and for the log: ms, seq
-- (last entry done), passed (stale references that were passed, by id).
local Frame = require('frame')
local Groups = require('groups')
local RankInLog = require('rank_in_log')
local ReadBudget = require('read_budget')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')

local MOST_JOBS, MOST_ENTRIES, PAGE = 1000, 1000, 100
-- So many jobs cost less to pass over than to count.
local FAR = 640
local OWN, RUNS = { 'jobs', 'vitals', 'traces' }, { 'runs' }

-- Of a queue: listing, what a step has found: id, and for jobs of a frame body and state fields. What it has cost. Records are read at the end: hashes,
-- in which each has its parts, tell what that will cost.
local function start(queue, ids_only)
  -- ids are short
  queue.listing = { most = ids_only and 5000 or MOST_JOBS, ids = {}, bodies = {}, fields = {}, entries = 0, bytes = 0,
    hashes = ids_only and {} or OWN, last_frame = {} }
end

local function is_spent(queue)
  local listing = queue.listing
  return #listing.ids >= listing.most or listing.entries >= MOST_ENTRIES or listing.bytes >= ReadBudget.MAX_BYTES
end

local function list_job(queue, id, body, fields)
  local listing = queue.listing
  local n = #listing.ids + 1
  listing.ids[n], listing.bodies[n], listing.fields[n] = id, body or false, fields or false
  listing.bytes = listing.bytes + (body and #body or ReadBudget.field_bytes(queue, listing.hashes, id))
end

-- Lists records until the step has enough. Gives how many.
local function list_records(queue, ids, from, to, turned)
  local count = 0
  for i = from, to do
    if is_spent(queue) then break end
    list_job(queue, ids[turned and from + to - i or i])
    count = count + 1
  end
  return count
end

-- Start and stop (from 0, negative from the end, both included) as Redis reads them, within a length. nil when empty.
local function clamp_range(start, stop, length)
  if start < 0 then start = math.max(length + start, 0) end
  if stop < 0 then stop = length + stop end
  stop = math.min(stop, length - 1)
  if start > stop then return nil end
  return start, stop
end

-- Of `count` jobs in a row, those that the walk gives: from, to (1 is the first), or nil.
local function portion(walk, count)
  if walk.skip >= count then
    walk.skip = walk.skip - count
    return nil
  end
  local from = walk.skip + 1
  local to = math.min(count, walk.skip + walk.take)
  walk.skip, walk.take = 0, walk.take - (to - from + 1)
  return from, to
end

-- The front list, in the direction of the walk. True when it is done.
local function walk_front(queue, walk)
  local listing = queue.listing
  local length = redis.call('LLEN', queue.base .. 'front')
  local jumped = math.min(walk.skip, math.max(length - walk.at, 0))
  walk.skip, walk.at = walk.skip - jumped, walk.at + jumped
  while walk.take > 0 and walk.at < length do
    if is_spent(queue) then return false end
    local count = math.min(walk.take, length - walk.at, listing.most - #listing.ids, PAGE)
    local from = walk.back and length - walk.at - count or walk.at
    local ids = redis.call('LRANGE', queue.base .. 'front', from, from + count - 1)
    local listed = list_records(queue, ids, 1, #ids, walk.back)
    walk.at, walk.take = walk.at + listed, walk.take - listed
  end
  return true
end

-- Ids of a frame that still wait, and which of them have a record.
local function frame_ids(queue, first, n)
  local chars = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first))
  local ids, own = {}, {}
  for i = 1, n do
    local char = chars and chars:sub(i, i)
    if char ~= '0' then
      ids[#ids + 1] = first + i - 1
      own[#ids] = char == 'r'
    end
  end
  return ids, own
end

local function walk_frame(queue, walk, first, n, blob)
  if walk.skip >= n and queue.holes == 0 then
    walk.skip = walk.skip - n
    return
  end
  local ids, own = frame_ids(queue, first, n)
  local from, to = portion(walk, #ids)
  if not from then return end
  if walk.back then from, to = #ids - to + 1, #ids - from + 1 end
  local body_of, bodies, header = Frame.given_bodies(queue, first, blob, n), {}, Frame.header_of(blob)
  for i = from, to do bodies[i] = not own[i] and body_of(ids[i] - first) end
  for i = from, to do
    local k = walk.back and to - (i - from) or i
    list_job(queue, Frame.id_in(header and header[1], ids[k]), bodies[k], bodies[k] and { pa = Frame.parent_in(header, first, ids[k] - first) })
  end
end

-- Stale references are told from the others as long as the walk starts at the head. False: the step ended among them, and the next one
-- begins with this entry again, of whose valid ones `walk.skip` were passed.
local function walk_references(queue, walk, ids)
  local valid, passed = ids, {}
  if queue.stale > 0 and not walk.back then
    valid = {}
    for i, count in ipairs(#ids > 0 and redis.call('HMGET', queue.base .. 'gone', unpack(ids)) or {}) do
      local id = ids[i]
      local before = passed[id] or walk.passed[id] or 0
      if tonumber(count or 0) > before then
        passed[id] = before + 1
      else
        valid[#valid + 1] = id
      end
    end
  end
  local skipped = walk.skip
  local from, to = portion(walk, #valid)
  if from then
    if walk.back then from, to = #valid - to + 1, #valid - from + 1 end
    local listed = list_records(queue, valid, from, to, walk.back)
    if listed < to - from + 1 then
      walk.skip, walk.take = skipped + listed, walk.take + to - from + 1 - listed
      return false
    end
  end
  for id, count in pairs(passed) do walk.passed[id] = count end
  return true
end

-- A walk that enters the log far from its jobs begins where they lie, if that is known.
local function jump(queue, walk)
  if walk.ms or walk.skip < FAR then return end
  local jobs = queue.waiting - redis.call('LLEN', queue.base .. 'front')
  local rank = walk.back and jobs - 1 - walk.skip or walk.skip
  local first, n, left, before = RankInLog.find(queue, rank, jobs, walk.skip)
  if not first then return end
  walk.ms, walk.seq, walk.skip = walk.back and first + n or first, 0, walk.back and left - 1 - before or before
end

-- Entries of the log behind the cursor, in the direction of the walk. True when it is done.
local function walk_log(queue, walk)
  local listing = queue.listing
  jump(queue, walk)
  local after, count = '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), 4
  while walk.take > 0 do
    if is_spent(queue) then return false end
    local entries
    if walk.back then
      entries = redis.call('XREVRANGE', queue.base .. 'log', walk.ms and '(' .. State.entry_id(walk.ms, walk.seq) or '+', after, 'COUNT', count)
    else
      local passed = walk.ms and (walk.ms > queue.cursor_ms or (walk.ms == queue.cursor_ms and walk.seq > queue.cursor_seq))
      entries = redis.call('XRANGE', queue.base .. 'log', passed and '(' .. State.entry_id(walk.ms, walk.seq) or after, '+', 'COUNT', count)
    end
    if #entries == 0 then return true end
    local bytes = 0
    for _, entry in ipairs(entries) do
      if walk.take == 0 or is_spent(queue) then break end
      local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
      ms, seq = tonumber(ms), tonumber(seq)
      if entry[2][1] == 'f' and seq >= 1 and seq <= 64 then
        walk_frame(queue, walk, ms, seq, entry[2][2])
      elseif not walk_references(queue, walk, Stored.ids(entry[2][2])) then
        return false
      end
      walk.ms, walk.seq = ms, seq
      bytes = bytes + #entry[2][2]
      listing.entries = listing.entries + 1
    end
    listing.bytes = listing.bytes + bytes
    -- about half a MiB at a time
    count = math.max(math.min(math.floor(524288 * #entries / (bytes + 1)), 128), 1)
  end
  return true
end

-- Jobs of groups. True when the walk is done with them.
local function walk_groups(queue, walk)
  local length = Groups.count(queue)
  local jumped = math.min(walk.skip, math.max(length - walk.in_groups, 0))
  walk.skip, walk.in_groups = walk.skip - jumped, walk.in_groups + jumped
  while walk.take > 0 and walk.in_groups < length do
    if is_spent(queue) then return false end
    local count = math.min(walk.take, queue.listing.most - #queue.listing.ids, PAGE)
    local ids = redis.call(walk.back and 'ZREVRANGE' or 'ZRANGE', queue.base .. 'grouped', walk.in_groups, walk.in_groups + count - 1)
    local listed = list_records(queue, ids, 1, #ids)
    walk.in_groups, walk.take = walk.in_groups + listed, walk.take - listed
  end
  return true
end

local function walk_waiting(queue, walk)
  if walk.back then return walk_groups(queue, walk) and walk_log(queue, walk) and walk_front(queue, walk) end
  return walk_front(queue, walk) and walk_log(queue, walk) and walk_groups(queue, walk)
end

-- A frame's blob; read once for jobs of one frame that follow each other.
local function frame_at(queue, first, n)
  local listing = queue.listing
  if listing.last_frame.first ~= first then
    listing.last_frame = { first = first, blob = Frame.frame_blob(queue, first, n) }
    listing.bytes, listing.entries = listing.bytes + #listing.last_frame.blob, listing.entries + 1
  end
  return listing.last_frame.blob
end

-- The jobs of a run that the walk gives.
local function walk_run(queue, walk, start, run, finished_on)
  local from, to = portion(walk, run[1])
  if not from then return end
  if walk.back then from, to = run[1] - to + 1, run[1] - from + 1 end
  local blob = frame_at(queue, run[2], run[3])
  local body_of, bodies, header = Frame.given_bodies(queue, run[2], blob, run[3]), {}, Frame.header_of(blob)
  local results = run[6] ~= '' and Stored.list(run[6])
  for i = from, to do bodies[i] = body_of(start + i - 1 - run[2]) end
  for i = from, to do
    local k = walk.back and to - (i - from) or i
    local result = results and results[k] ~= '' and results[k] or nil
    list_job(queue, Frame.id_in(run[7], start + k - 1), bodies[k], { am = 1, as = 1, po = run[4], pb = run[5] ~= '' and run[5] or nil, rv = result,
      fo = finished_on, pa = Frame.parent_in(header, run[2], start + k - 1 - run[2]) })
  end
end

-- Completed jobs. True when the walk is done. Where no run holds several jobs, ranks are positions.
local function walk_completed(queue, walk)
  local listing = queue.listing
  if walk.skip > 0 and redis.call('ZCARD', queue.base .. 'completed') == queue.completed then
    walk.at, walk.skip = walk.at + walk.skip, 0
  end
  while walk.take > 0 do
    if is_spent(queue) then return false end
    -- each member has one job at least
    local most = math.min(walk.skip + walk.take, 200)
    local page = redis.call(walk.back and 'ZREVRANGE' or 'ZRANGE', queue.base .. 'completed', walk.at, walk.at + most - 1, 'WITHSCORES')
    if #page == 0 then return true end
    local members = {}
    for i = 1, #page, 2 do members[#members + 1] = page[i] end
    local last = ReadBudget.last_fitting(queue, RUNS, members, 1, listing.bytes)
    local runs = redis.call('HMGET', queue.base .. 'runs', unpack(members, 1, last))
    for i = 1, last do
      if walk.take == 0 or is_spent(queue) then break end
      local member, raw = members[i], runs[i]
      walk.at = walk.at + 1
      -- an array of six, of which the first is a small number
      local count = raw and raw:byte(2) or 0
      local run = raw and walk.skip < count and Stored.run(raw)
      if raw and walk.skip >= count then
        walk.skip = walk.skip - count
      elseif run then
        walk_run(queue, walk, tonumber(member), run, Retention.ended_on(page[2 * i]))
      elseif portion(walk, 1) then
        list_job(queue, member)
      end
      listing.bytes = listing.bytes + (raw and #raw or 0)
    end
    listing.entries = listing.entries + last / 5
  end
  return true
end

-- Records in a sorted set, by position.
local function walk_set(queue, walk)
  local listing = queue.listing
  walk.at, walk.skip = walk.at + walk.skip, 0
  while walk.take > 0 do
    if is_spent(queue) then return false end
    local count = math.min(walk.take, listing.most - #listing.ids, PAGE)
    local ids = redis.call(walk.back and 'ZREVRANGE' or 'ZRANGE', queue.base .. walk.state, walk.at, walk.at + count - 1)
    if #ids == 0 then return true end
    local listed = list_records(queue, ids, 1, #ids)
    walk.at, walk.take = walk.at + listed, walk.take - listed
  end
  return true
end

local SETS = { failed = true, delayed = true, prioritized = true, ['waiting-children'] = true }

-- Behind it the name of a group, of which the waiting jobs are walked.
local GROUP = 'group:'

local function count_state(queue, state)
  if state == 'waiting' then return queue.waiting + Groups.count(queue) end
  if state == 'completed' then return queue.completed end
  return (SETS[state] or state:sub(1, #GROUP) == GROUP) and redis.call('ZCARD', queue.base .. state) or 0
end

-- A walk over a state's jobs from rank start to stop, from the end that is nearer; nil when there are none.
local function start_walk(queue, type, start, stop, ascending)
  local state = type == 'wait' and 'waiting' or type
  local count = count_state(queue, state)
  local from, to = clamp_range(start, stop, count)
  if not from then return nil end
  local is_far = (state == 'waiting' and queue.stale == 0 or state == 'completed') and from > count - 1 - to
  -- a stale reference is known by what stands before it
  if state == 'waiting' and queue.stale > 0 and not ascending then is_far = true end
  return { state = state, back = (not ascending) ~= is_far, turn = is_far, skip = is_far and count - 1 - to or from,
    take = to - from + 1, at = 0, in_groups = 0, passed = {} }
end

-- Goes on with a walk. True when it is done.
local function go_on(queue, walk)
  if walk.state == 'waiting' then return walk_waiting(queue, walk) end
  if walk.state == 'completed' then return walk_completed(queue, walk) end
  return walk_set(queue, walk)
end

return {
  start = start,
  start_walk = start_walk,
  go_on = go_on,
}
