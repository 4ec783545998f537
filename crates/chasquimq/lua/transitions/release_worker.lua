-- release_worker: a worker leaves. Gives up its lease, soon its memory too, and wakes another worker if jobs wait, or are delayed.
-- KEYS    base (also: state delayed prioritized waiting-workers resting wake lease:<owner> cancels:<owner> memo:<owner>:s)
-- ARGV    owner
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Worker#close (differs: a lease is a worker's)
-- FLAGS   allow-oom
local Delayed = require('delayed')
local State = require('state')
local StepMemo = require('step_memo')
local WaitingWorkers = require('waiting_workers')

return function(keys, args)
  local base = keys[1]
  local owner = args[1]
  local MEMO_TTL_MS = 60000

  local queue = State.open(base)

  redis.call('DEL', base .. 'lease:' .. owner, base .. 'cancels:' .. owner)
  -- a copy of a step may still be under way on a connection that broke: it must not take jobs for a worker that is gone
  redis.call('PEXPIRE', StepMemo.key_of(base, owner), MEMO_TTL_MS)
  WaitingWorkers.forget(base, owner)
  -- this worker may have been told of work, and nobody else know when a job is due
  Delayed.wake_for_jobs(queue)
  return 0
end
