-- renew_lease: a worker lives, and reads which of its jobs are cancelled (lists/cancel). Where its lease was lost it has one again: a server that is full
-- refuses a plain SET, but not this.
-- KEYS    base (also: lease:<owner> cancels:<owner>)
-- ARGV    owner, lease_ms (0 = it is left as it is), known (MessagePack array: what it has read before, and does not need any more)
-- RETURNS {1 | 0 (the lease was lost), <claim>:<id> | m<started_ms>:<id>, why, ...}
-- ERRORS  none      EVENTS none      COST O(cancelled jobs)
-- SOURCE  BullMQ 6.7 LockManager#extendLocks (differs: a lease is a worker's)
-- FLAGS   allow-oom
local Lease = require('lease')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local owner, lease_ms, known = args[1], tonumber(args[2]), cmsgpack.unpack(args[3])

  local lease, cancels = Lease.key_of(base, owner), base .. 'cancels:' .. owner
  local was_there = lease_ms == 0 or redis.call('PEXPIRE', lease, lease_ms) == 1
  if not was_there then redis.call('SET', lease, 1, 'PX', lease_ms) end
  WaitingList.call_in_chunks('HDEL', cancels, known)
  local reply = redis.call('HGETALL', cancels)
  table.insert(reply, 1, was_there and 1 or 0)
  return reply
end
