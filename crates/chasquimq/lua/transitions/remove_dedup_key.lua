-- remove_dedup_key: no job moves. A deduplication id is free again; what was kept for its owner stays with that job.
-- KEYS    base (also: de:<id>)
-- ARGV    dedup_id, job_id (only if this job owns it; '' = whoever does)
-- RETURNS 1 removed | 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#removeDeduplicationKey, Job#removeDeduplicationKey
-- FLAGS   allow-oom

return function(keys, args)
  local base = keys[1]
  local dedup_id, job_id = args[1], args[2]

  local key = base .. 'de:' .. dedup_id
  if job_id ~= '' and redis.call('GET', key) ~= job_id then return 0 end
  return redis.call('DEL', key)
end
