-- straight_record: the add of one record that does not head the waiting list: a job with a delay, a priority, an id of its own, or a deduplication id that
-- no other job has. It does what `add` does with any jobs, with the same texts under the same keys, but gathers nothing in tables; where it finds more
-- than it knows, or a key that does not take it, it gives nothing, has added nothing, and `add` does the add, or says why not.
local AclCheck = require('acl_check')
local Deduplication = require('deduplication')
local Delayed = require('delayed')
local EventLog = require('event_log')
local Packed = require('packed')
local PlainJobs = require('plain_jobs')
local Prioritized = require('prioritized')
local State = require('state')
local WaitingList = require('waiting_list')

-- Where the body stands (transitions/add).
local BODY = 6
local COMMANDS = { 'SET', 'XADD', 'ZADD', 'HSET' }

-- What the only item of a plan (transitions/add) says of its job: id ('' = its number), name, due_ms (nil: at once), priority (nil: none), dedup
-- (rules/deduplication; nil: it yields to no other). nil: there are several, or more is to be done.
local function job_of(item)
  if item[1] < 0 then
    if item[8] or item[9] then return nil end
    local due_ms, priority = item[4], item[7]
    return item[5] == 0 and { id = item[2], name = item[3], due_ms = due_ms > 0 and due_ms or nil, priority = priority ~= 0 and priority or nil,
      dedup = item[6] } or nil
  end
  if item[1] > 0 or item[2] > 1 or item[6] == 1 or item[8] or item[9] or item[10] then return nil end
  local ids, names, dues, priorities = item[3], item[4], item[5], item[7]
  return { id = ids == '' and '' or ids[1], name = type(names) == 'table' and names[1] or names, due_ms = dues ~= 0 and dues[1] or nil,
    priority = priorities ~= 0 and priorities[1] or nil }
end

-- Writes the job, and wakes who waits, unless a worker takes it at once.
local function write(queue, id, job, body, worker)
  local base, dedup, due_ms, priority = queue.base, job.dedup, job.due_ms, job.priority
  redis.call('HSET', base .. 'jobs', id, body)
  if priority then Prioritized.expect_priorities(queue) end
  if dedup then
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(Deduplication.fields_of(dedup)))
    Deduplication.own_key(queue, dedup, id)
  end
  if due_ms then
    if Delayed.delay_jobs(queue, { id }, { due_ms }) then WaitingList.wake(queue) end
    return
  end
  if not worker then WaitingList.wake(queue) end
  if priority then
    redis.call('ZADD', base .. 'prioritized', priority * Prioritized.PRIORITY_STEP + Prioritized.next_place(queue), id)
    return
  end
  queue.references, queue.waiting = queue.references + 1, queue.waiting + 1
  redis.call('XADD', base .. 'log', State.entry_id(queue.id, WaitingList.REFERENCE_SEQ + queue.references), 'r', '\145' .. Packed.text(id))
end

-- Takes back what was written of a job before a key did not take the rest.
local function take_back(queue, id, job)
  redis.pcall('HDEL', queue.base .. 'jobs', id)
  if job.due_ms then redis.pcall('ZREM', queue.base .. 'delayed', id) end
  if not job.dedup then return end
  redis.pcall('HDEL', queue.base .. 'vitals', id)
  redis.pcall('DEL', queue.base .. 'de:' .. job.dedup[1])
end

-- The group of the events of the job: added, and delayed or waiting. number: nil where it has an id of its own.
local function told_of(id, number, job)
  local name = Packed.text(job.name)
  local which = number and cmsgpack.pack(number) or '\145' .. Packed.text(id)
  local head = '\161B' .. which .. '\1' .. ((number or job.dedup) and name or '\145' .. name)
  if job.due_ms then return '\150' .. head .. '\167delayed\145' .. cmsgpack.pack(job.due_ms) end
  return '\149' .. head .. '\167waiting'
end

-- raw: the state; item: see job_of; worker: as in add. Gives the reply.
local function run(base, raw, item, args, now_ms, worker)
  local job = #raw == State.BYTES and job_of(item)
  if not job then return nil end
  local queue = State.open(base, nil, raw)
  -- added, and delayed or waiting
  if queue.max_length > 0 or EventLog.is_mark_due(queue, 2) then return nil end
  local number, own_id = queue.id + 1, job.id ~= ''
  local id = own_id and job.id or State.whole(number)
  -- children in frames have ids that somebody may give again
  if own_id and (queue.flows > 0 or redis.pcall('HEXISTS', base .. 'jobs', id) ~= 0) then return nil end
  if job.dedup and redis.call('EXISTS', base .. 'de:' .. job.dedup[1]) == 1 then return nil end
  AclCheck.require_commands(queue, COMMANDS)

  queue.id = number
  if not pcall(write, queue, id, job, args[BODY], worker) then
    take_back(queue, id, job)
    return nil
  end
  EventLog.place_events(queue, 2, now_ms)
  State.save_state(queue)
  -- a deduplicated job is named by its id
  local groups = told_of(id, not own_id and not job.dedup and number or nil, job)
  PlainJobs.tell(base, queue.raw, State.entry_id(queue.event_ms, queue.event_seq), 2, groups)
  return { number, own_id and { 0, id } or {} }
end

return {
  run = run,
}
