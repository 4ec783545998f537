-- one_failure: how the job of a short step (step/fast_path) ended that did not complete: its try failed, and it is tried again, at once or later, or has
-- failed for good; or it was let go, as it moved itself. Alone in its frame, or a record, as there.
-- A failure is {id, first (of one that is a frame: its number), body (of one that is tried again at once, or was a frame), fields (of a record: its state
-- fields), active (jobs/stored), to (waiting | delayed | failed; nil: it was let go), due_ms (of one that is delayed)}; once it is carried out also again (of
-- one that starts again in this step: step/next_job), or entry (of one that waits: the log entry to be written).
-- step is that of step/fast_path: failure is the outcome.
local Delayed = require('delayed')
local Fail = require('fail')
local Frame = require('frame')
local Holder = require('holder')
local Leave = require('leave')
local Metrics = require('metrics')
local Packed = require('packed')
local PlainJobs = require('plain_jobs')
local State = require('state')
local Successor = require('successor')
local WaitingList = require('waiting_list')

local NONE = {}

-- Where nobody holds the job any more, by whatever claim.
local function look_at_moved(base, outcome)
  local first, n, id = outcome[2], outcome[3], outcome[6]
  local is_held = redis.call('HEXISTS', base .. 'active', id) == 1
    or (first > 0 and (n > 1 or redis.call('HEXISTS', base .. 'takes', State.whole(first)) == 1))
  return not is_held and NONE or nil
end

local function look_at_failed(base, step)
  local first, n, _, claims, ids, bodies, to, _, due_ms = unpack(step.failure, 2, 10)
  local claim, id = Leave.value_at(claims, 1), ids[1]
  if #ids > 1 or n > 1 then return nil end
  local failure = { id = id, to = to, due_ms = to == 'delayed' and due_ms }
  local raw = first > 0 and redis.call('HGET', base .. 'takes', State.whole(first))
  local started, known, starts
  if raw then
    if type(bodies[1]) ~= 'string' then return nil end
    failure.first, failure.body = first, bodies[1]
    started, starts = Holder.started(raw, Holder.FRAME, step, claim), 1
  else
    started, known, starts = PlainJobs.look_at_held_record(base, id, claim, false, step)
  end
  local fields = known or {}
  if not started or fields.df or (to == 'failed' and not PlainJobs.stands_alone(fields)) then return nil end
  if to == 'waiting' then
    failure.body = failure.body or redis.call('HGET', base .. 'jobs', id)
    if not failure.body or fields.ld or fields.kl then return nil end
  end
  failure.fields, failure.active = fields, { cmsgpack.unpack(started), starts, step.owner, step.worker_name }
  return failure
end

-- Whether it is plain where a job goes that is tried again at once, and what starts then: it itself, where nothing waits; else it waits.
local function is_again_plain(queue, step)
  local room = step.want + step.surplus
  if queue.place > 0 or queue.stale > 0 or (step.want == 0 and room > 0) or (queue.waiting > 0 and room > 1) then return false end
  -- what is due stands before it; where due jobs may start in this step step/fast_path looks
  if step.none_delayed or (step.want >= 0 and not step.leaves_due) then return true end
  local due_ms = Delayed.next_due(queue)
  return not due_ms or due_ms > step.now_ms
end

-- What a rule drops may have parents.
local function is_rule_plain(queue, rule)
  return rule[1] ~= 0 and (queue.flows == 0 or (rule[1] < 0 and rule[2] < 0))
end

-- Nil where that needs more than a short step does.
local function look_at(queue, step)
  local outcome = step.failure
  local to, due_ms = outcome[8], outcome[10]
  if outcome[1] == 'm' then return look_at_moved(queue.base, outcome) end
  -- a job that is due by now starts in this step
  local is_plain = (to == 'delayed' and due_ms > step.starts_ms) or (to == 'waiting' and is_again_plain(queue, step))
    or (to == 'failed' and is_rule_plain(queue, step.keeps[outcome[9]]))
  return is_plain and look_at_failed(queue.base, step) or nil
end

local function delay(queue, id, due_ms)
  Delayed.delay_jobs(queue, { id }, { due_ms })
  return 1, cmsgpack.pack({ 'X', 'delayed', { id }, 'delay', State.whole(due_ms) })
end

local function keep_failed(queue, raw, id, step)
  local outcome = step.failure
  local attempts_made, reason, rule = outcome[11], outcome[13], step.keeps[outcome[9]]
  PlainJobs.keep_ended(State.open(queue.base, nil, raw), 'failed', rule, { step.now_ms, id }, step.now_ms)
  if rule[4] then Metrics.count_minutes(queue, 'failed', 1, step.now_ms, rule[4]) end
  local groups = cmsgpack.pack({ 'X', 'failed', { id }, 'failedReason', { reason }, 'prev', 'active' })
  if outcome[12] == 0 then return 1, groups end
  return 2, groups .. cmsgpack.pack({ 'X', 'retries-exhausted', { id }, 'attemptsMade', { State.whole(attempts_made) } })
end

-- It waits behind all others, or starts again where there are none. fields: its state fields, packed.
local function try_again(queue, failure, fields, step)
  local id = failure.id
  queue.references = queue.references + 1
  local seq = WaitingList.REFERENCE_SEQ + queue.references
  if step.want > 0 and queue.waiting == 0 then
    -- as if it had been taken out of the log
    queue.cursor_ms, queue.cursor_seq = queue.id, seq
    failure.again = { place = id, content = failure.body, fields = fields, starts = failure.active[2] + 1, has_failed = true }
  else
    failure.entry = State.entry_id(queue.id, seq)
  end
  queue.waiting = queue.waiting + 1
  return 1, '\149\161X\167waiting\145' .. Packed.text(id) .. '\164prev\166active'
end

-- Gives how many events that are, and them.
local function carry_out(queue, raw, failure, step)
  local base, id, first, outcome = queue.base, failure.id, failure.first, step.failure
  if first then
    redis.call('HDEL', base .. 'takes', State.whole(first))
    Frame.drop_frame(queue, first, 1)
    redis.call('HSET', base .. 'jobs', id, failure.body)
  else
    redis.call('HDEL', base .. 'active', id)
  end
  local fields, trace = failure.fields, Leave.value_at(outcome[14], 1)
  if failure.to == 'failed' and fields.di then Successor.pass_key_on(queue, id, fields, step) end
  local packed = Fail.failed_fields(fields, failure.active, outcome, step)
  redis.call('HSET', base .. 'vitals', id, packed)
  if trace ~= '' then redis.call('HSET', base .. 'traces', id, trace) end
  if failure.to == 'waiting' then return try_again(queue, failure, packed, step) end
  if failure.to == 'delayed' then return delay(queue, id, failure.due_ms) end
  return keep_failed(queue, raw, id, step)
end

-- Writes the log entry of one that waits, once the state is saved (queue/events says why in this order).
local function enter(base, failure)
  local queue = State.open(base)
  WaitingList.append_entry(queue, failure.entry, 'r', '\145' .. Packed.text(failure.id))
  -- what another program wrote behind the end of the log waits as well by now
  State.save_state(queue)
end

return {
  look_at = look_at,
  enter = enter,
  carry_out = carry_out,
}
