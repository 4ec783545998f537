-- dedup: adds that yield to a job that exists. The key de:<id> names the job that owns a deduplication id; with a ttl it expires by
-- itself, without one it goes when that job has finished or is removed. A deduplicated job is a record, whose vitals hold:
--   di  its deduplication id
--   nx  {plan item, body} of the latest add while it was active: it becomes a job when this one has finished

-- dedup is {id, ttl_ms or 0, extend, replace, reschedule, keep_last}, flags 1|0.
local function own_key(dedup, id)
  if dedup[2] > 0 then
    redis.call('SET', base .. 'de:' .. dedup[1], id, 'PX', dedup[2])
  else
    redis.call('SET', base .. 'de:' .. dedup[1], id)
  end
end

local function emit_deduplicated(id, dedup, discarded)
  emit(1, { 'X', 'deduplicated', { id }, 'deduplicationId', dedup[1], 'deduplicatedJobId', discarded })
end

local function change_vitals(id, field, value)
  local vitals = stored().vitals(redis.call('HGET', base .. 'vitals', id))
  vitals[field] = value
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
end

-- The owner is delayed still: it gives way.
local function replace_owner(owner, id, dedup)
  drop_records({ owner }, true, true)
  emit_job('removed', owner, 'delayed')
  emit_deduplicated(id, dedup, owner)
  if dedup[2] > 0 and dedup[3] == 0 and dedup[6] == 0 then
    redis.call('SET', base .. 'de:' .. dedup[1], id, 'KEEPTTL')
  else
    own_key(dedup, id)
  end
end

-- The owner is delayed still: it becomes due when the new job would have been.
local function reschedule_owner(owner, due_ms, body)
  local timestamp = cmsgpack.unpack(body)[1]
  due_ms = due_ms > 0 and due_ms or timestamp
  change_vitals(owner, 'd', due_ms - timestamp)
  delay_jobs({ owner }, { due_ms })
  emit_job('delayed', owner, nil, 'delay', whole(due_ms))
  wake()
end

-- The job that a new one yields to; nil when the new one is to be added. `settle` writes what its batch holds so far.
local function deduplicate(item, id, body, settle)
  local dedup = item[6]
  local key = base .. 'de:' .. dedup[1]
  local owner = redis.call('GET', key)
  if owner then settle() end
  if not owner or (redis.call('HEXISTS', base .. 'jobs', owner) == 0 and redis.call('PTTL', key) < 0) then
    own_key(dedup, id)
    return nil
  end
  local extend, replace, reschedule, keep_last = dedup[3] == 1, dedup[4] == 1, dedup[5] == 1, dedup[6] == 1
  if keep_last and redis.call('HEXISTS', base .. 'active', owner) == 1 then
    item[2] = id
    change_vitals(owner, 'nx', { item, body })
    redis.call('SET', key, owner)
  elseif replace then
    -- as in BullMQ, nothing is told of an add that replaces nothing
    if redis.call('ZREM', base .. 'delayed', owner) == 0 then return owner end
    replace_owner(owner, id, dedup)
    return nil
  elseif extend and (dedup[2] > 0 or keep_last) then
    own_key(dedup, owner)
  end
  emit_deduplicated(owner, dedup, id)
  if reschedule and redis.call('ZSCORE', base .. 'delayed', owner) then reschedule_owner(owner, item[4], body) end
  return owner
end
