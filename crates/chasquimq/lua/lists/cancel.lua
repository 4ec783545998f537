-- cancel: jobs that a call names (jobs/find), or a walk has met (lists/walk), are cancelled. What does not run has failed for good, or is gone.
-- Of what runs its worker is told, and it is to fail, should it ever start again: its worker may be gone, or run on, and then give it back.
--   cancels:<owner>  hash: <claim>:<id> of a job that this worker runs -> why. The worker reads it as it renews its lease (transitions/renew_lease).
local Active = require('active')
local Fail = require('fail')
local FailUnstarted = require('fail_unstarted')
local Locate = require('locate')
local Outcomes = require('outcomes')
local Parents = require('parents')
local PendingIteration = require('pending_iteration')
local State = require('state')
local Stored = require('stored')
local Successor = require('successor')
local TakeOut = require('take_out')
local WaitingList = require('waiting_list')
local WaitingWorkers = require('waiting_workers')

-- A worker reads what concerns it before its lease has run out; whose lease is gone renews it first.
local LEAST_MS = 60000
-- Rules of workers are not known here.
local KEEPS_ALL = { -1, -1, 1000 }

-- As src/errors/job-cancelled-error.ts words it.
local function text_of(reason)
  return reason == '' and 'The job was cancelled' or 'The job was cancelled: ' .. reason
end

-- Of a call: asked, by whose marks their workers were asked to look.

-- Jobs that were started: their workers are told once a call. Gives the ids of those that were not told the same before: one that leaves its frame is met
-- twice by a walk.
local function signal(queue, jobs, reason)
  local text, told, ids = text_of(reason), queue.call.asked or {}, {}
  queue.call.asked = told
  for _, job in ipairs(jobs) do
    local fields = Locate.detach(queue, job)
    if fields.df ~= text then
      fields.df = text
      Locate.store_fields(queue, job.id, fields)
      local owner = job.active[3]
      local marks = queue.base .. 'cancels:' .. owner
      redis.call('HSET', marks, State.whole(Active.claim_of(job.active)) .. ':' .. job.id, reason)
      if not told[marks] then
        redis.call('PEXPIRE', marks, math.max(redis.call('PTTL', queue.base .. 'lease:' .. owner), LEAST_MS))
        WaitingWorkers.ask(queue.base, owner)
        told[marks] = true
      end
      ids[#ids + 1] = job.id
    end
  end
  return ids
end

-- The state fields of a job that does not run. One of a frame gets a record.
local function fields_of(queue, job)
  if job.record then return job.fields or Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id)) end
  local fields = Locate.frame_fields(queue, job)
  job.body = Locate.body_for_record(queue, job, fields)
  WaitingList.append(queue.finishing.jobs_set, job.id, job.body)
  return fields
end

-- Jobs that wait for something fail for good.
local function fail(queue, state, jobs, reason, now_ms)
  local text, step = text_of(reason), { now_ms = now_ms, keeps = {} }
  Outcomes.start(queue)
  -- no step follows that would look after what starts
  queue.call.by_turn = nil
  local finishing = queue.finishing
  for at, job in ipairs(jobs) do
    local fields = fields_of(queue, job)
    fields.fo, fields.fr, fields.d, fields.df = now_ms, text, nil, nil
    step.keeps[at] = FailUnstarted.rule_of(FailUnstarted.options_of(job), KEEPS_ALL)
    if fields.di then Successor.pass_key_on(queue, job.id, fields, step) end
    if fields.pa then Parents.tell_failure(queue, fields.pa, job.id, text, step.keeps[at][1] == 0) end
    WaitingList.append(finishing.fields_set, job.id, cmsgpack.pack(fields))
    Fail.settle_failed(queue, job.id, at, text, state, step)
  end
  TakeOut.leave(queue, state, jobs)
  Outcomes.write(queue, step)
  Outcomes.apply_rules(queue, step)
  if rawget(finishing, 'added') then WaitingList.wake(queue) end
  Parents.cut_removed(queue)
  Parents.settle_parents(queue, now_ms)
end

-- Gives the ids of those that this concerns: not the next jobs of schedulers that have not started.
local function cancel(queue, state, jobs, reason, removes, now_ms)
  if state == 'active' then return signal(queue, jobs, reason) end
  if removes then return TakeOut.drop(queue, state, jobs, now_ms) end
  local ids, some = {}, {}
  for _, job in ipairs(jobs) do
    if not PendingIteration.is_pending_iteration(queue, job.id) then some[#some + 1], ids[#ids + 1] = job, job.id end
  end
  fail(queue, state, some, reason, now_ms)
  return ids
end

return { cancel = cancel }
