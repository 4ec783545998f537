-- fast_path: the step that most workers take most of the time: one job ended, or none, and one job starts, or none, in a queue without limits: from
-- the waiting list, of those with a priority, or of the delayed ones. It does what step/round_trip does for any step, with the same texts under the same
-- keys, but gathers nothing in tables. It looks at all that it needs before it changes anything; where it finds more than it knows, it gives nothing, and
-- step/round_trip does the step. The job: alone in its frame, or a record without parent and children.
-- Why: where a record ends and the next one starts, as in a worker with a single slot, a step takes the server 233,000 instructions; by step/round_trip it
-- takes 420,000.
-- step is that of step/round_trip, with want, surplus, place (of the job that completed: the number of one that is a frame, or a record's id; nil: none did),
-- ended (its claim), results (step/finish), and keep: how many jobs are kept, or, where age or metrics count as well, a rule of step/finish; of a job that
-- did not complete, with failure (the outcome of step/finish; false: there is none) and keeps.
local Delayed = require('delayed')
local EventLog = require('event_log')
local Frame = require('frame')
local Holder = require('holder')
local Metrics = require('metrics')
local NextJob = require('next_job')
local OneFailure = require('one_failure')
local Packed = require('packed')
local PlainJobs = require('plain_jobs')
local Prioritized = require('prioritized')
local Records = require('records')
local State = require('state')
local WaitingList = require('waiting_list')
local Stored = require('stored')
local Successor = require('successor')

-- Events of such a step at most: failed, retries-exhausted, waiting, active, drained.
local MOST_EVENTS = 5
-- How many jobs are kept by a rule that drops none.
local ALL = -1

local NONE = {}

-- When the record that completed had started, packed, if it is one that this worker holds, that stands alone, and of which nothing lies apart; and whether
-- the queue is bare, if it matters. Notes its state fields, and which start of it that was.
local function look_at_ended_record(base, id, step)
  local bare = not step.is_kept and PlainJobs.is_bare(base)
  local started, known, starts = PlainJobs.look_at_held_record(base, id, step.ended, bare, step)
  if known and (known.ld or known.lr or known.df or not PlainJobs.stands_alone(known)) then return nil end
  step.id, step.known, step.starts = id, known, starts
  return started, bare
end

-- The same of the job that completed. One that was alone in its frame may be a record by now.
local function look_at_ended(base, step)
  local place, keep = step.place, step.keep
  step.is_kept = (type(keep) == 'table' and keep[1] or keep) ~= 0
  if type(place) ~= 'number' then return look_at_ended_record(base, place, step) end
  -- a text once, as each command would make one
  local first = State.whole(place)
  local raw = redis.call('HGET', base .. 'takes', first)
  if raw then
    step.first = first
    return Holder.started(raw, Holder.FRAME, step, step.ended), false
  end
  return look_at_ended_record(base, first, step)
end

-- State fields of a record that completed, packed.
local function completed_fields(step, started)
  local known, results = step.known, step.results
  -- an array of one
  if not known then return PlainJobs.completed_fields(started, results:sub(2), step) end
  Stored.complete(known, { cmsgpack.unpack(started), step.starts, step.owner, step.worker_name }, results ~= '' and cmsgpack.unpack(results)[1], step.now_ms)
  return cmsgpack.pack(known)
end

-- Completes the job. Gives the event.
local function complete(queue, step, started, bare)
  local base, place, first, results, is_kept = queue.base, step.first and step.place or step.id, step.first, step.results, step.is_kept
  if first then
    redis.call('HDEL', base .. 'takes', first)
    if is_kept then
      redis.call('HSET', base .. 'runs', first, PlainJobs.run_of(place, started, results, step))
    else
      redis.call('XDEL', base .. 'log', State.entry_id(place, 1))
      Frame.drop_apart(queue, place)
    end
    return '\148\161C' .. cmsgpack.pack(place) .. '\1' .. Packed.text(results)
  end
  redis.call('HDEL', base .. 'active', place)
  if step.known and step.known.di then Successor.pass_key_on(queue, place, step.known, step) end
  if is_kept then
    redis.call('HSET', base .. 'vitals', place, completed_fields(step, started))
  elseif bare then
    redis.call('HDEL', base .. 'jobs', place)
  else
    Records.drop_records(queue, { place }, true, true, not step.known)
  end
  return '\151\161X\169completed\145' .. Packed.text(place) .. '\171returnvalue' .. (results == '' and '\164null' or results)
    .. '\164prev\166active'
end

-- Keeps the job, and drops others by the rule. completed: kept jobs, with it. Gives their number, and that of frames that lie apart.
local function keep_completed(queue, raw, step, completed)
  local base, member, keep, now_ms = queue.base, step.first or step.id, step.keep, step.now_ms
  if keep == ALL then
    redis.call('ZADD', base .. 'completed', now_ms, member)
    return completed, queue.apart
  end
  local rule = type(keep) == 'table' and keep or { keep, -1, 0 }
  return PlainJobs.keep_completed(base, raw, rule, { now_ms, member }, now_ms, completed)
end

-- What would start next, where that is plain: nil: nothing; false: several would, or more is to be done. Gives also when the next delayed job is due,
-- behind it, if one is looked for, and whether jobs with a priority are left (nil: not known).
local function look_at_next(queue, step, bare)
  local base, waiting, place, want, room = queue.base, queue.waiting, queue.place, step.want, step.want + step.surplus
  local first_due, due_ms, later_ms
  -- somebody who waits starts the rest
  if place > 0 and room > want and not WaitingList.are_all_busy(base) then room = want end
  if not (step.leaves_due or step.none_delayed) then
    first_due, due_ms, later_ms = Delayed.next_two(base)
    if due_ms and due_ms <= step.now_ms then
      if want < 1 or waiting > 0 or place > 0 or (later_ms and later_ms <= step.now_ms) then return false end
      return NextJob.look_at_record(base, first_due, 'delayed', bare), later_ms
    end
  end
  if want < 1 then
    if place > 0 and room > 0 then return false end
    return nil, due_ms
  end
  if waiting > 0 then
    if place > 0 and room > waiting then return false end
    -- what is lost is a matter for step/round_trip
    return NextJob.look_at_waiting(queue, bare) or false, due_ms
  end
  if place == 0 then return nil, due_ms end
  local head = NextJob.look_at_prioritized(base, bare, room)
  if head and room == 1 then return head, due_ms end
  return head, due_ms, false
end

-- The job completed: it leaves, is kept and counted. completed: kept jobs. Gives their number, and the event.
local function record_end(queue, raw, step, ended, completed)
  local group = complete(queue, step, ended.started, ended.bare)
  if step.is_kept then completed, queue.apart = keep_completed(queue, raw, step, completed + 1) end
  if type(step.keep) == 'table' and step.keep[4] then Metrics.count_minutes(queue, 'completed', 1, step.now_ms, step.keep[4]) end
  return completed, group
end

-- How the job ended: {started, bare} of one that completed, a failure (step/one_failure), or {} where none ended; nil: more than this knows is to be done.
local function look_at_end(queue, step)
  if step.failure then return OneFailure.look_at(queue, step) end
  if not step.place then return NONE end
  -- what a rule drops may have parents
  if queue.flows > 0 and step.keep ~= ALL and step.keep ~= 0 then return nil end
  local started, bare = look_at_ended(queue.base, step)
  return started and { started = started, bare = bare }
end

-- raw: the state. Gives nothing, or the reply's items, what is remembered of them (packed), when the next job is due, and whether work is left. nil and true:
-- several would start (step/few).
local function run(base, raw, step)
  if #raw < State.BYTES then return nil end
  local id, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq, event_fresh, holes, stale, max_events, place, flows,
    max_length, unlimited, apart = struct.unpack(State.FORMAT, raw)
  if unlimited == 0 or holes > 0 or EventLog.needs_care(event_fresh + MOST_EVENTS, max_events, event_ms, step.now_ms) then return nil end

  local queue = { base = base, id = id, waiting = waiting, place = place, cursor_ms = cursor_ms, cursor_seq = cursor_seq, references = references,
    stale = stale, flows = flows, apart = apart }
  local want, due, head, are_left = step.want, nil, nil, nil
  -- several would be taken, or one that starts later
  local most = math.min(waiting, want + step.surplus)
  if most > 1 or most > want then return nil, true end
  local ended = look_at_end(queue, step)
  if not ended then return nil end
  if want >= 0 then
    head, due, are_left = look_at_next(queue, step, ended.bare)
    -- what is due stands before a job that is tried again at once
    if head == false or (ended.to == 'waiting' and head and head.from == 'delayed') then return nil end
  end

  local items, ids, count, groups = NONE, '\144', 0, ''
  if ended.started then
    active, count = active - 1, 1
    completed, groups = record_end(queue, raw, step, ended, completed)
  elseif ended.to then
    active, count, groups = active - 1, OneFailure.carry_out(queue, raw, ended, step)
    head, waiting = head or ended.again, queue.waiting
  end
  step.taken = head and 1 or 0
  if want >= 0 then step.now_ms = step.starts_ms end
  if head then
    local told
    items, ids, told = NextJob.start(base, head, step)
    active, count, groups = active + 1, count + (head.from == 'delayed' and 2 or 1), groups .. told
    if waiting > 0 then waiting = waiting - 1 end
    if type(head.place) == 'number' then queue.cursor_ms, queue.cursor_seq = head.place, 1 end
  end
  if are_left == false then place = Prioritized.FIRST_PLACE end
  local is_full = want <= (head and 1 or 0)
  if is_full and (want < 0 or not step.asks_due) then
    due = nil
  elseif step.leaves_due and not step.none_delayed then
    due = Delayed.next_due(queue)
  elseif ended.due_ms then
    due = math.min(due or ended.due_ms, ended.due_ms)
  end
  local is_left = waiting > 0 or (are_left == nil and place > 0 and redis.call('EXISTS', base .. 'prioritized') == 1)
  if is_left or (ended.due_ms and not due) then
    WaitingList.wake({ base = base })
  elseif (ended.started or ended.to == 'failed') and not head and (is_full or not due) and active == 0 then
    count, groups = count + 1, groups .. '\146\161E\167drained'
  end
  if count > 0 then event_ms, event_seq = math.max(step.now_ms, event_ms), step.now_ms > event_ms and count or event_seq + count end
  active, completed = State.count(active), State.count(completed)
  local saved = struct.pack(State.FORMAT, id, queue.cursor_ms, queue.cursor_seq, waiting, active, completed, queue.references, event_ms, event_seq,
    event_fresh + count, holes, stale, max_events, place, flows, max_length, unlimited, queue.apart)
  if count > 0 then
    PlainJobs.save(base, saved, State.entry_id(event_ms, event_seq), count, groups)
    if ended.entry then OneFailure.enter(base, ended) end
  elseif saved ~= raw then
    redis.call('SET', base .. 'state', saved)
  end
  return items, ids, due, is_left
end

return {
  run = run,
}
