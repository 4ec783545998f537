-- renew_lease: a worker whose lease was lost has one again. Those that are there are renewed by a plain PEXPIRE; a server that is full refuses
-- a plain SET, but not this.
-- KEYS    base (also: lease:<owner>)
-- ARGV    owner, lease_ms
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 LockManager#extendLocks (differs: a lease is a worker's)
-- FLAGS   allow-oom
local Lease = require('lease')

return function(keys, args)
  local base = keys[1]
  local owner, lease_ms = args[1], args[2]

  redis.call('SET', Lease.key_of(base, owner), 1, 'PX', lease_ms)
  return 0
end
