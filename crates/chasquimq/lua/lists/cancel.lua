-- cancel: jobs that a call names (jobs/find), or a walk has met (lists/walk), are cancelled. What does not run has failed for good, or is gone.
-- Of what runs its worker is told, and it is to fail, should it ever start again: its worker may be gone, or run on, and then give it back.
--   cancels:<owner>  hash: <claim>:<id> of a job that this worker runs, or m<started_ms>:<id> of one that was taken manually by it -> why. The worker reads it
--                    as it renews its lease (transitions/renew_lease).
local Active = require('active')
local FailUnstarted = require('fail_unstarted')
local Lease = require('lease')
local Locate = require('locate')
local Lock = require('lock')
local PendingIteration = require('pending_iteration')
local State = require('state')
local TakeOut = require('take_out')
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

-- Tells the worker of a job; of one that was taken manually nobody, where no worker holds it any more.
local function mark(queue, job, reason, told)
  local owner, taking = job.active[3], State.whole(Active.claim_of(job.active))
  local lease = Lease.key_of(queue.base, owner)
  if Lock.is_manual(owner) then owner, taking = redis.call('GET', lease) or '', 'm' .. State.whole(job.active[1]) end
  if owner == '' then return end
  local marks = queue.base .. 'cancels:' .. owner
  redis.call('HSET', marks, taking .. ':' .. job.id, reason)
  if told[marks] then return end
  redis.call('PEXPIRE', marks, math.max(redis.call('PTTL', lease), LEAST_MS))
  WaitingWorkers.ask(queue.base, owner)
  told[marks] = true
end

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
      mark(queue, job, reason, told)
      ids[#ids + 1] = job.id
    end
  end
  return ids
end

-- Gives the ids of those that this concerns: not the next jobs of schedulers that have not started.
local function cancel(queue, state, jobs, reason, removes, now_ms)
  if state == 'active' then return signal(queue, jobs, reason) end
  if removes then return TakeOut.drop(queue, state, jobs, now_ms) end
  local ids, some = {}, {}
  for _, job in ipairs(jobs) do
    if not PendingIteration.is_pending_iteration(queue, job.id) then some[#some + 1], ids[#ids + 1] = job, job.id end
  end
  FailUnstarted.fail(queue, some, text_of(reason), KEEPS_ALL, now_ms)
  return ids
end

return { cancel = cancel }
