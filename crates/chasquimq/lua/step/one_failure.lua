-- one_failure: how the job of a short step (step/fast_path) ended that did not complete: its try failed, and it is tried again later or has failed for
-- good; or it was let go, as it moved itself. Alone in its frame, or a record, as there.
-- A failure is {id, first (a text, of one that is a frame), fields (of a record: its state fields), active (jobs/stored), to (delayed | failed; nil: it was let
-- go), due_ms (of one that is delayed), outcome (step/finish)}.
local Delayed = require('delayed')
local Fail = require('fail')
local Frame = require('frame')
local Holder = require('holder')
local Metrics = require('metrics')
local PlainJobs = require('plain_jobs')
local State = require('state')
local Stored = require('stored')
local Successor = require('successor')

-- Where nobody holds the job any more, by whatever claim.
local function look_at_moved(base, outcome)
  local first, n, id = outcome[2], outcome[3], outcome[6]
  local is_held = redis.call('HEXISTS', base .. 'active', id) == 1
    or (first > 0 and (n > 1 or redis.call('HEXISTS', base .. 'takes', State.whole(first)) == 1))
  return not is_held and { id = id } or nil
end

-- Which start of it that was, packed, and the record's state fields.
local function look_at_record(base, id, raw)
  local starts = raw and Holder.starts(raw)
  if not starts then return nil end
  local fields = redis.call('HGET', base .. 'vitals', id)
  return string.char(starts), fields and Stored.fields(fields) or {}
end

-- Whether nobody but its worker is to be told that a record has failed for good, by its state fields.
local function stands_alone(known)
  return not (known.pa or known.ch or known.nx)
end

local function look_at_failed(base, outcome, step)
  local first, n, _, claims, ids, bodies, to = unpack(outcome, 2, 8)
  local claim, id = type(claims) == 'table' and claims[1] or claims, ids[1]
  if #ids > 1 or n > 1 or (to ~= 'delayed' and to ~= 'failed') then return nil end
  local failure = { id = id, to = to, due_ms = to == 'delayed' and outcome[10], outcome = outcome, fields = {} }
  local raw = first > 0 and redis.call('HGET', base .. 'takes', State.whole(first))
  local starts = Holder.FRAME
  if raw then
    if type(bodies[1]) ~= 'string' then return nil end
    failure.first = State.whole(first)
  else
    raw = redis.call('HGET', base .. 'active', id)
    starts, failure.fields = look_at_record(base, id, raw)
    if not starts or failure.fields.df or (to == 'failed' and not stands_alone(failure.fields)) then return nil end
  end
  local started = Holder.started(raw, starts, step, claim)
  if not started then return nil end
  failure.active = { cmsgpack.unpack(started), failure.first and 1 or starts:byte(), step.owner, step.worker_name }
  return failure
end

-- Nil where that needs more than a short step does. flows: whether the queue has any.
local function look_at(base, outcome, flows, step)
  if outcome[1] == 'm' then return look_at_moved(base, outcome) end
  if outcome[8] == 'delayed' then
    -- a job that is due by now starts in this step
    if outcome[10] <= step.starts_ms then return nil end
  else
    local rule = step.keeps[outcome[9]]
    -- what a rule drops may have parents
    if rule[1] == 0 or (flows > 0 and (rule[1] > 0 or rule[2] >= 0)) then return nil end
  end
  return look_at_failed(base, outcome, step)
end

local function delay(queue, id, due_ms)
  Delayed.delay_jobs(queue, { id }, { due_ms })
  return 1, cmsgpack.pack({ 'X', 'delayed', { id }, 'delay', State.whole(due_ms) })
end

local function keep_failed(queue, raw, failure, step)
  local id, outcome = failure.id, failure.outcome
  local attempts_made, reason, rule = outcome[11], outcome[13], step.keeps[outcome[9]]
  PlainJobs.keep_ended(State.open(queue.base, nil, raw), 'failed', rule, { step.now_ms, id }, step.now_ms)
  if rule[4] then Metrics.count_minutes(queue, 'failed', 1, step.now_ms, rule[4]) end
  local groups = cmsgpack.pack({ 'X', 'failed', { id }, 'failedReason', { reason }, 'prev', 'active' })
  if outcome[12] == 0 then return 1, groups end
  return 2, groups .. cmsgpack.pack({ 'X', 'retries-exhausted', { id }, 'attemptsMade', { State.whole(attempts_made) } })
end

-- Gives how many events that are, and them.
local function carry_out(queue, raw, failure, step)
  local base, id, first, outcome = queue.base, failure.id, failure.first, failure.outcome
  if first then
    redis.call('HDEL', base .. 'takes', first)
    Frame.drop_frame(queue, tonumber(first), 1)
    redis.call('HSET', base .. 'jobs', id, outcome[7][1])
  else
    redis.call('HDEL', base .. 'active', id)
  end
  local fields, traces = failure.fields, outcome[14]
  if failure.to == 'failed' and fields.di then Successor.pass_key_on(queue, id, fields, step) end
  redis.call('HSET', base .. 'vitals', id, Fail.failed_fields(fields, failure.active, outcome, step))
  local trace = type(traces) == 'table' and traces[1] or traces
  if trace ~= '' then redis.call('HSET', base .. 'traces', id, trace) end
  if failure.to == 'delayed' then return delay(queue, id, outcome[10]) end
  return keep_failed(queue, raw, failure, step)
end

return {
  look_at = look_at,
  carry_out = carry_out,
}
