-- remove_dedup_key: no job moves. A deduplication id is free again; what was kept for its owner stays with that job.
-- KEYS    base (also: state de:<id> memo:<client>:<slot>)
-- ARGV    client, slot, number, dedup_id, job_id (only if this job owns it; '' = whoever does)
-- RETURNS 1 removed | 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#removeDeduplicationKey, Job#removeDeduplicationKey
-- FLAGS   allow-oom
local Memo = require('memo')

return function(keys, args)
  local base = keys[1]
  local client, slot, number, dedup_id, job_id = args[1], args[2], tonumber(args[3]), args[4], args[5]

  local _, known = Memo.open(base, client, slot, number)
  if known then return known end

  local key = base .. 'de:' .. dedup_id
  if job_id ~= '' and redis.call('GET', key) ~= job_id then return 0 end
  local removed = redis.call('DEL', key)
  Memo.remember(base, client, slot, number, removed)
  return removed
end
