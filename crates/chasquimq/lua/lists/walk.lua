-- walk: goes over the jobs of a state, a bounded step at a time, and shows each of them, as jobs/find locates it, to a function. The next step goes on at a
-- place that what comes and goes meanwhile does not shift: a job that is in the state all the while is met once.
-- Order: waiting jobs as they start, first those without a group; sets by score, or from their end (back); active jobs in none.
-- A place is a table that becomes JSON: last_id (jobs with higher numbers came later, and are not met), and
--   of a set       score and member, the last one done; number: of its run, the last job done
--   of what waits  phase (front | log | groups); left: elements of the front list to go, from its end, where none comes; entry: the last log entry done; begun: the
--                  one that is done in part, and at: jobs of it that are done; last: the entry that was the last at first; passed: stale references that were passed, by ids that jobs have
--   of active ones phase (takes | active), at (cursor of the scan), of its page: seen, what is done of it, as jobs that leave change what a page holds; number:
--                  of the frame that is done in part, the last job done
-- Of a queue: walking, the step: place, state, filter, back, meet (the function; it gives whether it wants more), is_full (it does not), and what the step has
-- cost: effort and bytes; reads: what lies in records is asked for; reads_data: their data as well.
local Active = require('active')
local Filter = require('filter')
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local ReadBudget = require('read_budget')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')

local PAGE, ENTRIES = 100, 8
-- What a step costs at most, in records.
local EFFORT, OF_FRAME, AN_ENTRY, A_STALE_ONE = 500, 0.25, 0.5, 0.1
local READ = { 'jobs', 'vitals' }
-- Of stale references so many are known apart; others of their ids are taken for stale as well.
local MOST_PASSED, STALE, UNSURE = 1000, 1, 2

local ENDED = { completed = true, failed = true }

local function start(queue, walking, place)
  walking.effort, walking.bytes, walking.place = 0, 0, place
  place.last_id = place.last_id or queue.id
  local filter = walking.filter
  -- the score of what has ended is when it did
  filter.by_place = ENDED[walking.state]
  filter.by_creation = walking.state ~= 'active'
  walking.reads_data = walking.reads_data or Filter.asks_for_data(filter)
  walking.reads = walking.reads_data or not Filter.picks_all(filter)
  queue.walking = walking
end

local function is_spent(walking)
  return walking.is_full or walking.effort >= EFFORT or walking.bytes >= ReadBudget.MAX_BYTES
end

local function is_later(id, place)
  return #id <= 15 and id:match('^[1-9]%d*$') and tonumber(id) > place.last_id
end

-- Shows a job to the caller; false: it is gone. Gives false when the step is to end behind it.
local function show(queue, job)
  local walking = queue.walking
  walking.effort = walking.effort + (job and not job.record and OF_FRAME or 1)
  if job and not is_later(job.id, walking.place) then walking.is_full = not walking.meet(job) end
  return not is_spent(walking)
end

-- Records of this state, by id, with body and state fields where these are read; of as many as this step may read. false: one is gone.
local function load_records(queue, ids)
  local walking, records = queue.walking, {}
  if #ids == 0 then return records end
  if not walking.reads then
    for _, id in ipairs(ids) do records[id] = { id = id, state = walking.state, record = true } end
    return records
  end
  local last, bytes = ReadBudget.last_fitting(queue, READ, ids, 1, walking.bytes)
  walking.bytes = bytes
  local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(ids, 1, last))
  local fields = redis.call('HMGET', queue.base .. 'vitals', unpack(ids, 1, last))
  for i = 1, last do
    local of = Stored.fields(fields[i])
    -- what lies apart
    local more = walking.reads_data and of.ld or 0
    if i > 1 and walking.bytes + more > ReadBudget.MAX_BYTES then break end
    walking.bytes = walking.bytes + more
    records[ids[i]] = bodies[i] and { id = ids[i], state = walking.state, record = true, body = bodies[i], fields = of }
  end
  return records
end

-- What a frame has cost; a step that has begun with it goes through it. Gives what it is given.
local function note_frame(queue, blob, goes_on)
  local walking = queue.walking
  walking.bytes = walking.bytes + #blob + (walking.reads and Frame.bytes_apart(queue, blob) or 0)
  walking.effort = walking.effort + AN_ENTRY
  return goes_on
end

-- ---- Sets

-- Not by Lua's own comparison, which follows the server's language.
local function is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local byte, its = one:byte(i), other:byte(i)
    if byte ~= its then return byte < its end
  end
  return #one < #other
end

-- How many members of a set stand before one that is, or was, there; with_it: that one as well.
local function count_before(set, score, member, with_it)
  local low, high = redis.call('ZCOUNT', set, '-inf', '(' .. score), redis.call('ZCOUNT', set, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = redis.call('ZRANGE', set, middle, middle)[1]
    if is_before(other, member) or (with_it and other == member) then low = middle + 1 else high = middle end
  end
  return low
end

-- The rank of the first member that is not done, from the end that the walk begins at.
local function first_rank(queue, set)
  local walking = queue.walking
  local place, filter, back = walking.place, walking.filter, walking.back
  if place.member then
    -- a run may be done in part
    local is_done = not place.number
    if back then return redis.call('ZCARD', set) - count_before(set, place.score, place.member, not is_done) end
    return count_before(set, place.score, place.member, is_done)
  end
  if not filter.by_place then return 0 end
  if back then
    return filter.before_ms >= 0 and redis.call('ZCARD', set) - redis.call('ZCOUNT', set, '-inf', Retention.until_ms(filter.before_ms)) or 0
  end
  return filter.after_ms >= 0 and redis.call('ZCOUNT', set, '-inf', '(' .. State.whole(filter.after_ms)) or 0
end

-- Whether the rest of a set, from this score on, is of another time.
local function is_beyond(walking, score)
  local filter, ms = walking.filter, Retention.ended_on(score)
  if not filter.by_place then return false end
  if walking.back then return filter.after_ms >= 0 and ms < filter.after_ms end
  return filter.before_ms >= 0 and ms > filter.before_ms
end

-- The jobs of a completed run. False when the step ends among them.
local function show_run(queue, member, run, blob)
  local walking = queue.walking
  local place, start, header = walking.place, tonumber(member), Frame.header_of(blob)
  local done = place.number
  for i = 0, run[1] - 1 do
    local number = walking.back and start + run[1] - 1 - i or start + i
    if not done or (walking.back and number < done) or (not walking.back and number > done) then
      local goes_on = show(queue, { id = Frame.id_in(run[7], number), state = 'completed', first = run[2], n = run[3], offset = number - run[2],
        blob = blob, number = number, header = header, run = run, run_start = start })
      place.number = number
      if not goes_on and i < run[1] - 1 then return false end
    end
  end
  return true
end

local function walk_run(queue, member, run)
  local blob = Frame.frame_blob(queue, run[2], run[3])
  return note_frame(queue, blob, show_run(queue, member, run, blob))
end

-- What a page of a set holds: {member, score, run or nil}, in order, and the records among them; as far as it may be read.
local function read_page(queue, page)
  local members, runs, ids, listed = {}, {}, {}, {}
  for i = 1, #page, 2 do members[#members + 1] = page[i] end
  local last = #members
  if queue.walking.state == 'completed' then
    last = ReadBudget.last_fitting(queue, { 'runs' }, members, 1, queue.walking.bytes)
    runs = redis.call('HMGET', queue.base .. 'runs', unpack(members, 1, last))
  end
  for i = 1, last do
    local run = runs[i] and Stored.run(runs[i])
    if not run then ids[#ids + 1] = members[i] end
    listed[i] = { members[i], page[2 * i], run }
  end
  return listed, load_records(queue, ids)
end

-- True when all of the set was met.
local function walk_set(queue, key)
  local walking = queue.walking
  local place, set = walking.place, queue.base .. key
  local rank = first_rank(queue, set)
  while true do
    local page = redis.call(walking.back and 'ZREVRANGE' or 'ZRANGE', set, rank, rank + PAGE - 1, 'WITHSCORES')
    if #page == 0 then return true end
    local listed, records = read_page(queue, page)
    for _, one in ipairs(listed) do
      local member, score, run = one[1], one[2], one[3]
      if is_beyond(walking, score) then return true end
      -- not read any more
      if not run and records[member] == nil then return false end
      if member ~= place.member or score ~= place.score then place.number = nil end
      place.member, place.score = member, score
      local goes_on
      if run then goes_on = walk_run(queue, member, run) else goes_on = show(queue, records[member]) end
      if not goes_on then return false end
      place.number = nil
      if is_spent(walking) then return false end
    end
    if #listed < #page / 2 then return false end
    rank = rank + #listed
  end
end

-- ---- Waiting jobs

-- From its head. True when all of it was met.
local function walk_front(queue)
  local walking = queue.walking
  local place, length = walking.place, redis.call('LLEN', queue.base .. 'front')
  place.left = math.min(place.left or length, length)
  while place.left > 0 do
    local from = length - place.left
    local ids = redis.call('LRANGE', queue.base .. 'front', from, from + PAGE - 1)
    local records = load_records(queue, ids)
    for i, id in ipairs(ids) do
      local job = records[id]
      if job == nil then return false end
      place.left = place.left - 1
      if job then job.rank = from + i - 1 end
      if not show(queue, job) then return false end
    end
  end
  return true
end

-- False when the step ends among the jobs of the frame.
local function show_frame(queue, first, n, blob)
  local place = queue.walking.place
  local chars = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first)) or string.rep('1', n)
  local header, own, from = Frame.header_of(blob), {}, place.at or 0
  for i = from, n - 1 do
    if chars:byte(i + 1) == 114 then own[#own + 1] = Frame.id_in(header and header[1], first + i) end
  end
  local records = load_records(queue, own)
  for i = from, n - 1 do
    local char, id = chars:sub(i + 1, i + 1), Frame.id_in(header and header[1], first + i)
    local job = { id = id, state = 'waiting' }
    if char == 'r' then job = records[id] end
    if job == nil then return false end
    if job then job.first, job.n, job.offset, job.blob, job.number, job.header = first, n, i, blob, first + i, header end
    place.at = i + 1
    if char ~= '0' and not show(queue, job) and i < n - 1 then return false end
  end
  return true
end

local function walk_frame(queue, first, n, blob)
  return note_frame(queue, blob, show_frame(queue, first, n, blob))
end

-- What is known of an entry's references, by place: STALE, or UNSURE; nil: the job waits there. Those that stand first are stale, as often as `gone` says; as
-- workers may have passed some of them since, one that is left counts only when its job is found to wait. Gives also how many of each id were passed then.
local function judge_references(queue, ids)
  local known, passed, before, kept = {}, {}, queue.walking.place.passed or {}, 0
  if queue.stale == 0 or #ids == 0 then return known, passed end
  for _ in pairs(before) do kept = kept + 1 end
  for i, count in ipairs(redis.call('HMGET', queue.base .. 'gone', unpack(ids))) do
    local id, gone = ids[i], tonumber(count or 0)
    local done = passed[id] or before[id] or 0
    if gone > done then
      known[i] = STALE
      -- one that is nowhere comes no more
      if kept < MOST_PASSED and redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 then
        passed[id], kept = done + 1, kept + 1
      end
    elseif gone > 0 or done > 0 then
      known[i] = UNSURE
    end
  end
  return known, passed
end

-- The job of such a reference, once a step.
local function find_waiting(queue, id)
  local walking = queue.walking
  walking.unsure = walking.unsure or {}
  local job = not walking.unsure[id] and Find.locate(queue, id)
  walking.unsure[id] = true
  if not job or not job.record or job.state ~= 'waiting' then return false end
  job.fields, job.is_unsure = Stored.fields(redis.call('HGET', queue.base .. 'vitals', id)), true
  walking.bytes = walking.bytes + #job.body
  return job
end

-- The same of an entry of references. Stale ones count as passed once the entry is done.
local function walk_references(queue, ids)
  local walking = queue.walking
  local place = walking.place
  local known, passed = judge_references(queue, ids)
  local from, sure = place.at or 0, {}
  for i = from + 1, #ids do
    if not known[i] then sure[#sure + 1] = ids[i] end
  end
  local records = load_records(queue, sure)
  for i = from + 1, #ids do
    local job = records[ids[i]]
    if known[i] == UNSURE then
      job = find_waiting(queue, ids[i])
    elseif known[i] == STALE then
      walking.effort = walking.effort + A_STALE_ONE
    elseif job == nil then
      return false
    elseif job then
      job.is_referred = true
    end
    place.at = i
    if known[i] ~= STALE and not show(queue, job) and i < #ids then return false end
  end
  for id, count in pairs(passed) do
    place.passed = place.passed or {}
    place.passed[id] = count
  end
  return true
end

-- Behind which entry of the log the step goes on: a worker may have gone past where the last one ended.
local function last_entry(queue)
  local place = queue.walking.place
  local cursor = State.entry_id(queue.cursor_ms, queue.cursor_seq)
  if not place.entry then return cursor end
  local ms, seq = place.entry:match('^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if ms > queue.cursor_ms or (ms == queue.cursor_ms and seq >= queue.cursor_seq) then return place.entry end
  return cursor
end

local function walk_log(queue)
  local walking = queue.walking
  local place = walking.place
  if not place.last then
    local last = redis.call('XREVRANGE', queue.base .. 'log', '+', '-', 'COUNT', 1)[1]
    place.last = last and last[1] or '0-0'
  end
  place.entry = last_entry(queue)
  while true do
    local entries = redis.call('XRANGE', queue.base .. 'log', '(' .. place.entry, place.last, 'COUNT', ENTRIES)
    if #entries == 0 then return true end
    for _, entry in ipairs(entries) do
      local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
      local is_frame = entry[2][1] == 'f' and tonumber(seq) >= 1 and tonumber(seq) <= 64
      -- the one that was begun may be gone
      if place.begun ~= entry[1] then place.begun, place.at = entry[1], nil end
      local done
      if is_frame then
        done = walk_frame(queue, tonumber(ms), tonumber(seq), entry[2][2])
      else
        done = walk_references(queue, Stored.ids(entry[2][2]))
      end
      if not done then return false end
      place.entry, place.begun, place.at = entry[1], nil, nil
      if is_spent(walking) then return false end
    end
  end
end

-- Those of one group lie by themselves. True when all were met.
local function walk_waiting(queue)
  local walking = queue.walking
  local place, group = walking.place, walking.filter.group
  if group then return walk_set(queue, 'group:' .. group) end
  place.phase = place.phase or 'front'
  if place.phase == 'front' and walk_front(queue) then place.phase = 'log' end
  if place.phase == 'log' and walk_log(queue) then place.phase = 'groups' end
  if place.phase ~= 'groups' or is_spent(walking) then return false end
  return not Groups.are_used(queue) or walk_set(queue, 'grouped')
end

-- ---- Active jobs

-- What is done of a page.
local function seen_of(place)
  local seen = {}
  place.seen = place.seen or {}
  for _, member in ipairs(place.seen) do seen[member] = true end
  return seen
end

-- The active jobs of a frame. False when the step ends among them.
local function show_held(queue, first, n, blob, holder)
  local place, header = queue.walking.place, Frame.header_of(blob)
  local done = place.number or 0
  -- it is another's
  if done < first or done >= first + n then done = 0 end
  for i = 0, n - 1 do
    local is_active = holder[2] == '' or holder[2]:sub(i + 1, i + 1) == '1'
    if is_active and first + i > done then
      local goes_on = show(queue, { id = Frame.id_in(header and header[1], first + i), state = 'active', first = first, n = n, offset = i, blob = blob,
        number = first + i, header = header, holder = holder })
      place.number = first + i
      if not goes_on then return false end
    end
  end
  return true
end

local function walk_held(queue, first, holder)
  local n, blob = Active.held_frame(queue, first, holder)
  return note_frame(queue, blob, show_held(queue, first, n, blob, holder))
end

-- A page of taken frames, by their numbers. True when it was met.
local function walk_takes(queue, page)
  local frames, place = {}, queue.walking.place
  local seen = seen_of(place)
  for i = 1, #page, 2 do
    local first, holder = Active.read_frame_holder(page[i], page[i + 1])
    if not seen[page[i]] then frames[#frames + 1] = { first, holder, page[i] } end
  end
  table.sort(frames, function(one, other) return one[1] < other[1] end)
  for _, frame in ipairs(frames) do
    if not walk_held(queue, frame[1], frame[2]) then return false end
    place.seen[#place.seen + 1] = frame[3]
    if is_spent(queue.walking) then return false end
  end
  return true
end

-- The same of active records, by their ids.
local function walk_active_records(queue, page)
  local place, ids, entries = queue.walking.place, {}, {}
  local seen = seen_of(place)
  for i = 1, #page, 2 do
    if not seen[page[i]] then
      ids[#ids + 1] = page[i]
      entries[page[i]] = Stored.active(page[i + 1])
    end
  end
  table.sort(ids, is_before)
  local records = load_records(queue, { unpack(ids, 1, PAGE) })
  for _, id in ipairs(ids) do
    local job = records[id]
    if job == nil then return false end
    place.seen[#place.seen + 1] = id
    if job then
      job.active = entries[id]
      if job.fields then Stored.start(job.fields, job.active) end
    end
    if not show(queue, job) then return false end
  end
  return true
end

-- True when all were met.
local function walk_active(queue)
  local walking = queue.walking
  local place = walking.place
  place.phase, place.at = place.phase or 'takes', place.at or '0'
  while not is_spent(walking) do
    local is_takes = place.phase == 'takes'
    local found = redis.call('HSCAN', queue.base .. place.phase, place.at, 'COUNT', is_takes and ENTRIES or PAGE)
    local walk_page = is_takes and walk_takes or walk_active_records
    if not walk_page(queue, found[2]) then return false end
    walking.effort = walking.effort + AN_ENTRY
    place.at, place.number, place.seen = found[1], nil, nil
    if found[1] == '0' then
      if not is_takes then return true end
      place.phase = 'active'
    end
  end
  return false
end

-- Shows jobs of a state until the step has done enough, or the caller has. True when all of them were met; else the place says where to go on.
local function go(queue)
  local state = queue.walking.state
  if state == 'waiting' then return walk_waiting(queue) end
  if state == 'active' then return walk_active(queue) end
  return walk_set(queue, state)
end

return {
  start = start,
  go = go,
}
