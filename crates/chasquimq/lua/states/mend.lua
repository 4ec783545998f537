-- mend: what a queue's state says, and its keys contradict, since one of them was lost: a server that was full has deleted it, or a person has. Looked at
-- once in each stalled check (reads/find_lost) by the sizes of the keys. What is contradicted is counted; what can be told by other keys is written again.
local Active = require('active')
local Delayed = require('delayed')
local Find = require('find')
local Frame = require('frame')
local MendGroups = require('mend_groups')
local Recovery = require('recovery')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- Jobs of a frame, or of a run; what is read at once, and of entries; frames that are counted each time, and where their number is known to be wrong.
local MOST_JOBS, PAGE, ENTRIES, FEW_FRAMES, MOST_FRAMES = 64, 1000, 16, 16, 1000
local RECORD_SETS = { 'failed', 'delayed', 'prioritized', 'waiting-children' }

local function size(queue, command, key)
  return redis.call(command, queue.base .. key)
end

-- Nothing waits behind the cursor: no frame has holes, and no reference is stale.
local function end_of_log(queue)
  if queue.holes > 0 then redis.call('UNLINK', queue.base .. 'holes') end
  if queue.stale > 0 then redis.call('UNLINK', queue.base .. 'gone') end
  queue.holes, queue.stale = 0, 0
end

-- Jobs that wait by a reference, or in front.
local function referred(queue, entries)
  local ids = {}
  for _, id in ipairs(redis.call('LRANGE', queue.base .. 'front', 0, -1)) do ids[id] = true end
  for _, entry in ipairs(entries) do
    for _, id in ipairs(entry.ids or {}) do ids[id] = true end
  end
  return ids
end

-- The entries behind the cursor: first, n and header of a frame, or ids.
local function waiting_entries(queue)
  local entries, after = {}, '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq)
  repeat
    local page = redis.call('XRANGE', queue.base .. 'log', after, '+', 'COUNT', ENTRIES)
    for _, entry in ipairs(page) do
      local first, n = entry[1]:match('^(%d+)-(%d+)$')
      local field, blob = entry[2][1], entry[2][2] or ''
      if field == 'f' and tonumber(n) <= MOST_JOBS then
        entries[#entries + 1] = { first = tonumber(first), n = tonumber(n), header = Frame.header_of(blob) }
      elseif field == 'r' then
        entries[#entries + 1] = { ids = Stored.ids(blob) }
      end
      after = '(' .. entry[1]
    end
  until #page == 0
  return entries
end

-- What became of the jobs of a waiting frame, by their records; nil when none has one.
local function holes_of(queue, frame, elsewhere)
  local chars, ids = {}, {}
  for i = 1, frame.n do ids[i] = Frame.id_in(frame.header and frame.header[1], frame.first + i - 1) end
  local touched = false
  for i, body in ipairs(redis.call('HMGET', queue.base .. 'jobs', unpack(ids))) do
    chars[i] = '1'
    if body then
      touched = true
      chars[i] = Find.record_state(queue, ids[i]) == 'waiting' and not elsewhere[ids[i]] and 'r' or '0'
    end
  end
  return touched and table.concat(chars) or nil
end

-- Of waiting frames it is not known any more which of their jobs were touched. Those that have a record were: it is told where it is. Of the others none
-- is known to have gone.
local function mend_holes(queue)
  if redis.call('HLEN', queue.base .. 'holes') == queue.holes then return end
  local entries = waiting_entries(queue)
  local elsewhere, set = referred(queue, entries), {}
  for _, frame in ipairs(entries) do
    if frame.first and redis.call('HEXISTS', queue.base .. 'holes', State.whole(frame.first)) == 0 then
      local chars = holes_of(queue, frame, elsewhere)
      if chars then WaitingList.append(set, State.whole(frame.first), chars) end
    end
  end
  WaitingList.call_in_chunks('HSET', queue.base .. 'holes', set)
  Recovery.count_waiting(queue)
end

-- Jobs that nobody would look for, and jobs that nobody will find.
local function mend_waiting(queue)
  if queue.waiting > 0 then
    if redis.call('EXISTS', queue.base .. 'front', queue.base .. 'log') > 0 then return end
    queue.waiting = 0
    end_of_log(queue)
    return
  end
  local after = '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq)
  local is_empty = #redis.call('XRANGE', queue.base .. 'log', after, '+', 'COUNT', 1) == 0
  if is_empty then end_of_log(queue) end
  if is_empty and size(queue, 'LLEN', 'front') == 0 then return end
  Recovery.count_waiting(queue)
  WaitingList.wake_for_work(queue)
end

-- Frames that nobody holds, and that hold no job that is kept, leave the log.
local function drop_frames(queue)
  local needed, after, until_id = {}, '-', State.entry_id(queue.cursor_ms, queue.cursor_seq)
  for _, number in ipairs(redis.call('HKEYS', queue.base .. 'takes')) do needed[number] = true end
  for _, number in ipairs(redis.call('HKEYS', queue.base .. 'runs')) do needed[number] = true end
  repeat
    local page = redis.call('XRANGE', queue.base .. 'log', after, until_id, 'COUNT', ENTRIES)
    for _, entry in ipairs(page) do
      local first, n = entry[1]:match('^(%d+)-(%d+)$')
      first, n = tonumber(first), tonumber(n)
      local is_needed = entry[2][1] ~= 'f' or n > MOST_JOBS
      for number = first, is_needed and 0 or first + n - 1 do is_needed = is_needed or needed[State.whole(number)] end
      if not is_needed then Frame.drop_frame(queue, first, n) end
      after = '(' .. entry[1]
    end
  until #page == 0
end

-- Jobs of the frames that somebody holds.
local function count_held(queue)
  local jobs, stored = 0, redis.call('HGETALL', queue.base .. 'takes')
  for i = 1, #stored, 2 do
    local first, holder = Active.read_frame_holder(stored[i], stored[i + 1])
    if holder[2] == '' then
      jobs = jobs + Active.held_frame(queue, first, holder)
    else
      jobs = jobs + select(2, holder[2]:gsub('1', ''))
    end
  end
  return jobs
end

-- Places of a limit that jobs take of which nobody knows who has them.
local function mend_active(queue)
  local records, frames = size(queue, 'HLEN', 'active'), size(queue, 'HLEN', 'takes')
  local least, most = records + frames, records + MOST_JOBS * frames
  local is_known = queue.active >= least and queue.active <= most
  if (least == most or frames > FEW_FRAMES) and is_known then return end
  local before = queue.active
  queue.active = frames > MOST_FRAMES and most or records + (frames > 0 and count_held(queue) or 0)
  if queue.active == before then return end
  drop_frames(queue)
  WaitingList.wake_for_work(queue)
end

-- Takes what has no record out of a set of records; of the completed ones, what is no run either.
local function drop_nothing(queue, set)
  local from = 0
  repeat
    local page, left = redis.call('ZRANGE', queue.base .. set, from, from + PAGE - 1), 0
    for _, member in ipairs(page) do
      local is_there = redis.call('HEXISTS', queue.base .. 'jobs', member) == 1
        or (set == 'completed' and redis.call('HEXISTS', queue.base .. 'runs', member) == 1)
      if is_there then left = left + 1 else redis.call('ZREM', queue.base .. set, member) end
    end
    from = from + left
  until #page == 0
end

-- Completed runs that nobody would drop any more: they are taken to have ended as they began.
local function list_runs(queue)
  local add = {}
  Recovery.each_run(queue.base, function(start, raw)
    local run = Stored.run(raw)
    if run then WaitingList.append(add, State.whole(run[4]), start) end
  end)
  -- those that are there keep their time
  for i = 1, #add, 2 do
    if not redis.call('ZSCORE', queue.base .. 'completed', add[i + 1]) then redis.call('ZADD', queue.base .. 'completed', add[i], add[i + 1]) end
  end
end

-- Records that are listed, and are not there.
local function mend_records(queue, listed)
  local all = listed
  for _, set in ipairs(RECORD_SETS) do all = all + size(queue, 'ZCARD', set) end
  if all == 0 or all <= size(queue, 'HLEN', 'jobs') then return end
  for _, set in ipairs(RECORD_SETS) do drop_nothing(queue, set) end
  drop_nothing(queue, 'completed')
  queue.completed = Recovery.count_completed(queue.base)
end

local function mend_completed(queue)
  local members, runs = size(queue, 'ZCARD', 'completed'), size(queue, 'HLEN', 'runs')
  if runs > members then list_runs(queue) end
  local records = math.max(members - runs, 0)
  if queue.completed < members or queue.completed > records + MOST_JOBS * runs or runs > members then
    if runs == 0 then
      drop_nothing(queue, 'completed')
      drop_frames(queue)
    end
    queue.completed = Recovery.count_completed(queue.base)
    records = math.max(size(queue, 'ZCARD', 'completed') - runs, 0)
  end
  mend_records(queue, records)
end

-- Without it nobody looks for delayed jobs (states/delayed).
local function mend_delays(queue)
  local last = redis.call('ZREVRANGE', queue.base .. 'delayed', 0, 0, 'WITHSCORES')[2]
  if not last or redis.call('EXISTS', queue.base .. 'delays') == 1 then return end
  Delayed.begin_anew(queue, last)
  WaitingList.wake(queue)
end

-- Looks at all of it, and saves what has changed.
local function run(queue)
  if queue.holes > 0 and queue.waiting > 0 then mend_holes(queue) end
  mend_waiting(queue)
  mend_active(queue)
  mend_completed(queue)
  mend_delays(queue)
  MendGroups.run(queue)
  State.save_state(queue)
end

return {
  end_of_log = end_of_log,
  mend_holes = mend_holes,
  run = run,
}
