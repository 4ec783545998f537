-- deduplication: adds that yield to a job that exists. The key de:<id> names the job that owns a deduplication id; with a ttl it expires by
-- itself, without one it goes when that job has finished or is removed. A deduplicated job is a record, whose state fields hold:
--   di  its deduplication id
--   du  1: it owns that until it starts; else until it has finished
--   nx  {plan item, body} of the latest add while it was active: it becomes a job when this one has finished
local Delayed = require('delayed')
local Events = require('events')
local Records = require('records')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- dedup is {id, ttl_ms or 0, extend, replace, reschedule, keep_last, until_started (or not there)}, flags 1|0.
local function own_key(queue, dedup, id)
  if dedup[2] > 0 then
    redis.call('SET', queue.base .. 'de:' .. dedup[1], id, 'PX', dedup[2])
  else
    redis.call('SET', queue.base .. 'de:' .. dedup[1], id)
  end
end

-- State fields of a job that owns its id.
local function fields_of(dedup)
  return { di = dedup[1], du = dedup[7] }
end

local function emit_deduplicated(queue, id, dedup, discarded)
  Events.emit(queue, 1, { 'X', 'deduplicated', { id }, 'deduplicationId', dedup[1], 'deduplicatedJobId', discarded })
end

local function change_fields(queue, id, field, value)
  local fields = Stored.fields(redis.call('HGET', queue.base .. 'vitals', id))
  fields[field] = value
  redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
end

-- The owner is delayed still: it gives way.
local function replace_owner(queue, owner, id, dedup)
  Records.drop_records(queue, { owner }, true, true)
  Events.emit_job(queue, 'removed', owner, 'delayed')
  emit_deduplicated(queue, id, dedup, owner)
  if dedup[2] > 0 and dedup[3] == 0 and dedup[6] == 0 then
    redis.call('SET', queue.base .. 'de:' .. dedup[1], id, 'KEEPTTL')
  else
    own_key(queue, dedup, id)
  end
end

-- The owner is delayed still: it becomes due when the new job would have been.
local function reschedule_owner(queue, owner, due_ms, body)
  local timestamp = cmsgpack.unpack(body)[1]
  due_ms = due_ms > 0 and due_ms or timestamp
  change_fields(queue, owner, 'd', due_ms - timestamp)
  Delayed.delay_jobs(queue, { owner }, { due_ms })
  Events.emit_job(queue, 'delayed', owner, nil, 'delay', State.whole(due_ms))
  WaitingList.wake(queue)
end

-- The job that a new one yields to; nil when the new one is to be added. settle(queue) writes what its batch holds so far.
local function deduplicate(queue, item, id, body, settle)
  local dedup = item[6]
  local key = queue.base .. 'de:' .. dedup[1]
  local owner = redis.call('GET', key)
  if owner then settle(queue) end
  if not owner or (redis.call('HEXISTS', queue.base .. 'jobs', owner) == 0 and redis.call('PTTL', key) < 0) then
    own_key(queue, dedup, id)
    return nil
  end
  local extend, replace, reschedule, keep_last = dedup[3] == 1, dedup[4] == 1, dedup[5] == 1, dedup[6] == 1
  if keep_last and redis.call('HEXISTS', queue.base .. 'active', owner) == 1 then
    item[2] = id
    change_fields(queue, owner, 'nx', { item, body })
    redis.call('SET', key, owner)
  elseif replace then
    -- as in BullMQ, nothing is told of an add that replaces nothing
    if redis.call('ZREM', queue.base .. 'delayed', owner) == 0 then return owner end
    replace_owner(queue, owner, id, dedup)
    return nil
  elseif extend and (dedup[2] > 0 or keep_last) then
    own_key(queue, dedup, owner)
  end
  emit_deduplicated(queue, owner, dedup, id)
  if reschedule and redis.call('ZSCORE', queue.base .. 'delayed', owner) then reschedule_owner(queue, owner, item[4], body) end
  return owner
end

return {
  fields_of = fields_of,
  own_key = own_key,
  deduplicate = deduplicate,
}
