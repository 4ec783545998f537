-- few: the step of a worker whose handlers take time and run side by side: a few plain jobs completed, or none, and a few start, or none, in a queue
-- without limits and priorities. Like step/fast_path for one of each, it does what step/round_trip does for any step, and looks at all that it
-- needs before it changes anything; where it finds more than it knows, it gives nothing, and step/round_trip does the step.
-- Why: such a step comes each few milliseconds, when the server's caches hold other things, and costs what the code costs that it goes through: two jobs
-- that end and two that start took the server 280 us of CPU by step/round_trip.
-- step is that of step/round_trip.
local Delayed = require('delayed')
local EventLog = require('event_log')
local Fetched = require('fetched')
local Frame = require('frame')
local Holder = require('holder')
local Metrics = require('metrics')
local Packed = require('packed')
local PlainJobs = require('plain_jobs')
local Records = require('records')
local State = require('state')
local WaitingList = require('waiting_list')

-- Jobs that end, and jobs that start, at most.
local MOST = 16
-- Events of such a step at most: completed, active, drained.
local MOST_EVENTS = 2 * MOST + 1

local NONE = {}

-- What completed: records and frames of one job, with the claim and the result (packed; '' = undefined) of each; groups, what is told of them, in order;
-- keep, the index of the rule of them all. Gives nil where there is anything else.
local function ends_of(outcomes)
  local ends = { ids = {}, claims = {}, values = {}, firsts = {}, frame_claims = {}, results = {}, members = {}, groups = {} }
  local ids, firsts, members, groups, seen = ends.ids, ends.firsts, ends.members, ends.groups, {}
  for at, outcome in ipairs(outcomes) do
    local kind, first, n, offset, claims = unpack(outcome, 1, 5)
    local keep, results
    if kind == 'r' then
      keep, results = outcome[7], outcome[8]
      local some = outcome[6]
      local values = results ~= '' and cmsgpack.unpack(results)
      if #ids + #some > MOST then return nil end
      for i, id in ipairs(some) do
        local count, value = #ids + 1, values and values[i] or ''
        if seen[id] then return nil end
        seen[id] = true
        ids[count], ends.claims[count] = id, type(claims) == 'table' and claims[i] or claims
        ends.values[count] = value ~= '' and Packed.text(value) or ''
        members[#members + 1] = id
        if values and value == '' then values[i] = 'null' end
      end
      groups[at] = cmsgpack.pack({ 'X', 'completed', some, 'returnvalue', values or 'null', 'prev', 'active' })
    elseif kind == 'c' and n == 1 and offset == 0 and not outcome[9] and not seen[first] then
      keep, results = outcome[7], outcome[8]
      local count = #firsts + 1
      if count > MOST then return nil end
      seen[first] = true
      firsts[count], ends.frame_claims[count], ends.results[count] = first, claims, results
      members[#members + 1] = State.whole(first)
      groups[at] = '\148\161C' .. cmsgpack.pack(first) .. '\1' .. Packed.text(results)
    else
      return nil
    end
    if keep ~= (ends.keep or keep) then return nil end
    ends.keep = keep
  end
  return ends
end

-- When each of these had started, packed; nil where this worker does not hold one of them.
local function starts_of(key, places, of, claims, step)
  if #places == 0 then return NONE end
  local started = {}
  for i, raw in ipairs(redis.call('HMGET', key, unpack(places))) do
    started[i] = raw and Holder.started(raw, of, step, claims[i])
    if not started[i] then return nil end
  end
  return started
end

-- Whether one of these records has state fields.
local function has_fields(base, ids)
  for _, fields in ipairs(redis.call('HMGET', base .. 'vitals', unpack(ids))) do
    if fields then return true end
  end
  return false
end

-- Whether what completed is plain, and this worker's. Notes when each had started, and whether the queue is bare, if it matters.
local function look_at_ended(base, ends, step)
  local ids = ends.ids
  ends.is_kept = step.keeps[ends.keep][1] ~= 0
  step.bare = not ends.is_kept and #ids > 0 and PlainJobs.is_bare(base)
  ends.started = starts_of(base .. 'active', ids, Holder.RECORD, ends.claims, step)
  ends.frames_started = ends.started and starts_of(base .. 'takes', ends.firsts, Holder.FRAME, ends.frame_claims, step)
  return ends.frames_started and (step.bare or #ids == 0 or not has_fields(base, ids))
end

-- Plain records that head the waiting list, up to `most`: ids, bodies and bytes. nil: one of them is another.
local function look_at_front(base, bare, most)
  local ids = redis.call('LRANGE', base .. 'front', 0, most - 1)
  if #ids == 0 then return ids, NONE, 0 end
  if #ids > Fetched.FIRST_RECORDS and redis.call('HSTRLEN', base .. 'jobs', ids[1]) > Fetched.SMALL then return nil end
  local bodies, bytes = redis.call('HMGET', base .. 'jobs', unpack(ids)), 0
  for i = 1, #ids do
    if not bodies[i] then return nil end
    bytes = bytes + #bodies[i]
  end
  if not bare and has_fields(base, ids) then return nil end
  return ids, bodies, bytes
end

-- Frames of one job behind the cursor, up to `most`: {first, blob, ...}.
local function look_at_log(queue, most)
  local frames = {}
  if most == 0 then return frames end
  for i, entry in ipairs(redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), '+', 'COUNT', most)) do
    local first, blob = entry[2][1] == 'f' and entry[1]:match('^(%d+)-1$'), entry[2][2]
    if not first or Frame.header_of(blob) then break end
    frames[2 * i - 1], frames[2 * i] = tonumber(first), blob
  end
  return frames
end

-- Whether a rule drops jobs that ended before: they may have parents.
local function may_drop(rule)
  return rule[1] > 0 or rule[2] >= 0
end

-- Lets the jobs leave the active ones, and drops what is not kept.
local function complete(queue, ends, step)
  local base, ids, firsts = queue.base, ends.ids, ends.firsts
  if #ids > 0 then
    redis.call('HDEL', base .. 'active', unpack(ids))
    if ends.is_kept then
      local set = {}
      for i, id in ipairs(ids) do set[2 * i - 1], set[2 * i] = id, PlainJobs.completed_fields(ends.started[i], ends.values[i], step) end
      redis.call('HSET', base .. 'vitals', unpack(set))
    elseif step.bare then
      redis.call('HDEL', base .. 'jobs', unpack(ids))
    else
      Records.drop_records(queue, ids, true, true, true)
    end
  end
  if #firsts == 0 then return end
  redis.call('HDEL', base .. 'takes', unpack(firsts))
  local args = {}
  for i, first in ipairs(firsts) do
    if ends.is_kept then
      args[2 * i - 1], args[2 * i] = first, PlainJobs.run_of(first, ends.frames_started[i], ends.results[i], step)
    else
      args[i] = State.entry_id(first, 1)
    end
  end
  redis.call(ends.is_kept and 'HSET' or 'XDEL', base .. (ends.is_kept and 'runs' or 'log'), unpack(args))
  for i = 1, ends.is_kept and 0 or #firsts do Frame.drop_apart(queue, firsts[i]) end
end

-- Keeps them by their rule. completed: kept jobs, with them. Gives their number, and that of frames that lie apart.
local function keep_completed(base, raw, ends, step, completed)
  local add = {}
  for i, member in ipairs(ends.members) do add[2 * i - 1], add[2 * i] = State.whole(step.now_ms), member end
  return PlainJobs.keep_completed(base, raw, step.keeps[ends.keep], add, step.now_ms, completed)
end

-- Starts records and frames. Gives the reply's items, what is remembered of them, and the events.
local function start(base, ids, bodies, frames, active, step)
  local items, known, groups = {}, {}, {}
  if #ids > 0 then
    local entry, set = Holder.entry(step, Holder.RECORD, active > Fetched.FEW_ACTIVE and Fetched.NO_LIST), {}
    for i, id in ipairs(ids) do set[2 * i - 1], set[2 * i] = id, entry end
    redis.call('LPOP', base .. 'front', #ids)
    redis.call('HSET', base .. 'active', unpack(set))
    Fetched.give_records(items, ids, bodies, 0, 0)
    WaitingList.append(known, 0, ids)
    groups[1] = cmsgpack.pack({ 'X', 'active', ids, 'prev', 'waiting' })
  end
  if #frames > 0 then
    local entry, set = Holder.entry(step, Holder.FRAME), {}
    for i = 1, #frames, 2 do
      local first = frames[i]
      set[i], set[i + 1] = first, entry
      WaitingList.append(items, first, 1, frames[i + 1])
      WaitingList.append(known, first, 1)
      groups[#groups + 1] = '\147\161a' .. cmsgpack.pack(first) .. '\1'
    end
    redis.call('HSET', base .. 'takes', unpack(set))
  end
  return items, cmsgpack.pack(known), table.concat(groups)
end

-- What can start, in the order of the waiting list: ids and bodies of records, then frames, up to `most`; nil where it is not plain, or more than a step
-- takes beyond what it must.
local function look_at_waiting(queue, most, step)
  local want = step.want
  local ids, bodies, bytes = look_at_front(queue.base, step.bare, most)
  if not ids then return nil end
  local frames = look_at_log(queue, most - #ids)
  for i = 2, #frames, 2 do bytes = bytes + (Frame.bytes_apart(queue, frames[i]) or #frames[i]) end
  local count = #ids + #frames / 2
  if count < math.min(want, most) or bytes >= Fetched.MOST_BYTES or (count > want and bytes >= step.max_bytes) then return nil end
  return ids, bodies, frames
end

-- raw: the state. Gives nothing, or the reply's items, what is remembered of them (packed), when the next job is due, and whether work is left.
local function run(base, raw, outcomes, step)
  if #raw < State.BYTES or #outcomes > MOST then return nil end
  local id, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq, event_fresh, holes, stale, max_events, place, flows,
    max_length, unlimited, apart = struct.unpack(State.FORMAT, raw)
  if unlimited == 0 or place > 0 or holes > 0 or EventLog.needs_care(event_fresh + MOST_EVENTS, max_events, event_ms, step.now_ms) then return nil end

  local queue = { base = base, cursor_ms = cursor_ms, cursor_seq = cursor_seq, apart = apart }
  local want, due, ends, ids, bodies, frames = step.want, nil, nil, NONE, NONE, NONE
  local most = want < 0 and 0 or math.min(waiting, want + step.surplus)
  -- somebody who waits starts the rest
  if most > want and want >= 0 and not WaitingList.are_all_busy(base) then most = want end
  if most > MOST then return nil end
  if #outcomes > 0 then
    ends = ends_of(outcomes)
    if not ends or (flows > 0 and may_drop(step.keeps[ends.keep])) or not look_at_ended(base, ends, step) then return nil end
  end
  if want >= 0 and not (step.leaves_due or step.none_delayed) then
    due = Delayed.next_due(queue)
    if due and due <= step.now_ms then return nil end
  end
  if most > 0 then
    ids, bodies, frames = look_at_waiting(queue, most, step)
    if not ids then return nil end
  end

  local items, known, count, groups, taken = NONE, '\144', 0, '', #ids + #frames / 2
  if ends then
    count, groups = #ends.members, table.concat(ends.groups)
    active = active - count
    complete(queue, ends, step)
    if ends.is_kept then completed, queue.apart = keep_completed(base, raw, ends, step, completed + count) end
    local points = step.keeps[1][4]
    if points then Metrics.count_minutes(queue, 'completed', count, step.now_ms, points) end
  end
  step.taken = taken
  if want >= 0 then step.now_ms = step.starts_ms end
  if taken > 0 then
    local told
    items, known, told = start(base, ids, bodies, frames, active, step)
    waiting, active, count, groups = waiting - taken, active + taken, count + taken, groups .. told
    if #frames > 0 then cursor_ms, cursor_seq = frames[#frames - 1], 1 end
  end
  if want <= taken and (want < 0 or not step.asks_due) then
    due = nil
  elseif step.leaves_due and not step.none_delayed then
    due = Delayed.next_due(queue)
  end
  if waiting > 0 then
    WaitingList.wake({ base = base })
  elseif ends and taken == 0 and (want <= 0 or not due) and active == 0 then
    count, groups = count + 1, groups .. '\146\161E\167drained'
  end
  if count > 0 then
    event_ms, event_seq = math.max(step.now_ms, event_ms), step.now_ms > event_ms and count or event_seq + count
    active, completed = State.count(active), State.count(completed)
    local saved = struct.pack(State.FORMAT, id, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq,
      event_fresh + count, holes, stale, max_events, place, flows, max_length, unlimited, queue.apart)
    PlainJobs.save(base, saved, State.entry_id(event_ms, event_seq), count, groups)
  end
  return items, known, due, waiting > 0
end

return {
  run = run,
}
