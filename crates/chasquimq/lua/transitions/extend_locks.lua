-- extend_locks: no change of state. Gives the leases behind tokens so much longer to live, from now on.
-- KEYS    base (also: state jobs active log takes runs holes completed failed delayed prioritized waiting-children lease:<owner>)
-- ARGV    duration_ms, locks (MessagePack: {id, token, ...})
-- RETURNS {id, ...} of the jobs that the tokens do not hold
-- ERRORS  none      EVENTS none      COST O(jobs log n)
-- SOURCE  BullMQ 6.7 Job#extendLock, Worker#extendJobLocks
-- FLAGS   allow-oom
local Find = require('find')
local Lock = require('lock')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local duration_ms, locks = args[1], cmsgpack.unpack(args[2])

  local queue = State.open(base)

  local failed, extended = {}, {}
  for i = 1, #locks, 2 do
    local id, token = locks[i], locks[i + 1]
    local job = Find.locate(queue, id)
    if token ~= '0' and Lock.check_lock(queue, job, token) == 0 then
      local owner = Lock.owner_of(job)
      local lease = base .. 'lease:' .. owner
      if not extended[lease] then
        extended[lease] = true
        redis.call('PEXPIRE', lease, duration_ms)
        -- what a step left there (states/lease) says nothing of this
        if not Lock.is_manual(owner) then redis.call('SET', lease, 1, 'XX', 'KEEPTTL') end
      end
    else
      failed[#failed + 1] = id
    end
  end
  return failed
end
