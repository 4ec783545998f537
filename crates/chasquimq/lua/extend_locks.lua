-- extend_locks: no change of state. Gives the leases behind tokens so much longer to live, from now on.
-- KEYS    base (also: state jobs active log takes runs holes completed failed delayed prioritized waiting-children lease:<owner>)
-- ARGV    duration_ms, locks (MessagePack: {id, token, ...})
-- RETURNS {id, ...} of the jobs that the tokens do not hold
-- ERRORS  none      EVENTS none      COST O(jobs log n)
-- SOURCE  BullMQ 6.7 Job#extendLock, Worker#extendJobLocks
local base = KEYS[1]
local duration_ms, locks = ARGV[1], cmsgpack.unpack(ARGV[2])

-- @include lib/state
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/lock

local failed = {}
for i = 1, #locks, 2 do
  local id, token = locks[i], locks[i + 1]
  local job = locate(id)
  if token ~= '0' and check_lock(job, token) == 0 then
    redis.call('PEXPIRE', base .. 'lease:' .. owner_of(job), duration_ms)
  else
    failed[#failed + 1] = id
  end
end
return failed
