-- adopt: jobs of BullMQ (migrate/bull) become ours, in the same place, with all that is known of them. First they are looked at, which changes
-- nothing and says why one cannot come; then all that can are written, and taken out of BullMQ's keys.
-- Of a queue: adoption, what the call is about to write: source, sources (of all queues that are moved), tries (true: nothing will be
-- written), first_number (of what is in our log), bytes; ids (theirs) of the jobs that come; lists of arguments, by what they are for.
local Bull = require('bull')
local Delayed = require('delayed')
local Find = require('find')
local Prioritized = require('prioritized')
local State = require('state')
local WaitingList = require('waiting_list')

-- Longer data and results lie apart (jobs/large).
local LARGE_DATA, LARGE_RESULT = 262144, 4096
local FAMILY = { { ':processed', 'processed:' }, { ':failed', 'ignored:' }, { ':unsuccessful', 'faults:' } }
-- Numbers beyond are not exact, nor due times beyond, whose scores are 4096 times as high; ids get higher than this by nobody's counting.
local MOST, MOST_DUE_MS, MOST_ID = 2 ^ 53, 2 ^ 50, 1e14
local PENDING = { wait = true, paused = true, prioritized = true, delayed = true }

local function start(queue, source, sources, tries)
  local head = redis.call('XRANGE', queue.base .. 'log', '-', '+', 'COUNT', 1)[1]
  local first_number = head and tonumber(head[1]:match('^%d+')) or math.huge
  queue.adoption = State.with_lists({ source = source, sources = sources, tries = tries, bytes = 0, first_number = first_number })
end

-- Whether a job of ours has this id. Frames are asked for one only where one that is so old may hold it.
local function is_taken(queue, id)
  if redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 then return true end
  local number = #id <= 15 and tonumber(id:match('^%d+$') or nil)
  local may_be = number and number >= queue.adoption.first_number or #id == 36 and queue.flows == 1
  return may_be and Find.locate(queue, id) ~= nil
end

-- A number that is stored as a text: finite, and not below 0; nil when there is none, or it is 0.
local function amount(text)
  local number = tonumber(text or nil)
  if not number or number - number ~= 0 or number <= 0 then return nil end
  return math.min(math.floor(number), MOST)
end

-- Why a child cannot come before its parent does: BullMQ's worker that ended it would find nobody to tell, and ours neither.
local function waits_for_parent(adoption, job)
  local key = job.parentKey
  if not key or key == '' then return false end
  local there = redis.pcall('EXISTS', key)
  if there == 0 then return false end
  -- in another slot of the cluster
  if there ~= 1 then return true end
  local pending = redis.pcall('SISMEMBER', key .. ':dependencies', adoption.source .. job.id)
  if pending ~= 1 then return false end
  if not adoption.tries then return true end
  -- one that can be moved will be, before its children
  for _, known in ipairs(adoption.sources) do
    if key:sub(1, #known) == known then return redis.call('LPOS', known .. 'active', key:sub(#known + 1)) ~= false end
  end
  return true
end

local function fields_of(job, place)
  local fields = { am = amount(job.atm) or amount(job.attemptsMade), as = amount(job.ats), st = amount(job.stc), po = amount(job.processedOn),
    fo = amount(job.finishedOn), p = job.progress or nil, fr = job.failedReason or nil, pb = job.pb or nil, df = job.defa or nil,
    di = job.deid or nil, nx = job.next }
  if place == 'delayed' or place == 'waiting-children' then fields.d = amount(job.delay) end
  -- what is read first is what the job was told when it was added
  local told = tonumber((job.opts or ''):match('"priority":(%-?%d+)')) or 0
  if told ~= job.rank then fields.pr = job.rank end
  if job.stacktrace and job.stacktrace ~= '[]' and job.stacktrace ~= '' and not fields.fr then fields.tr = '' end
  return fields
end

-- The scheduler whose pending iteration a job is: {id, slot, fields}; nil of any other job.
local function scheduler_of(adoption, job, place)
  if not job.rjk or not PENDING[place] then return nil end
  local slot = tonumber(job.id:match(':(%d+)$'))
  local latest = tonumber(redis.call('ZSCORE', adoption.source .. 'repeat', job.rjk) or nil)
  if not slot or latest ~= slot or slot > MOST then return nil end
  return { id = job.rjk, slot = slot, fields = Bull.read_scheduler(adoption.source, job.rjk) }
end

-- What is to be added when the owner of a deduplication id has ended, as our vitals hold it (rules/deduplication): nil when there is nothing, false when
-- it cannot come.
local function next_of(adoption, job)
  local kept = Bull.owner_of(adoption.source, job.deid) == job.id and Bull.read_next(adoption.source, job.deid)
  if not kept then return nil end
  local ok, opts = pcall(cjson.decode, kept.opts or '')
  if not ok or type(opts) ~= 'table' or not kept.jid or kept.pk then return false end
  local added, delay_ms, priority = amount(opts.timestamp) or 0, amount(opts.delay), amount(opts.priority) or 0
  local name, due_ms = kept.name or '', delay_ms and added + delay_ms or 0
  return { { -1, kept.jid, name, due_ms, opts.lifo == true and 1 or 0, { job.deid, 0, 0, 0, 0, 1 }, priority },
    cmsgpack.pack({ added, kept.opts, name, kept.data or '{}', priority ~= 0 and priority or nil }) }
end

-- Reads what else there is of a job. Says why it cannot come.
local function read_around(adoption, job)
  -- every job has a time: other hashes that lie under such keys have none
  if not job.timestamp then return 'unreadable' end
  if job.parent and job.parent ~= '' then
    local pa, key = Bull.parent_of(job.parent)
    if not pa or (job.parentKey and job.parentKey ~= '' and job.parentKey ~= key) then return 'unreadable' end
    job.pa, job.parentKey = pa, key
  end
  if waits_for_parent(adoption, job) then return 'parent' end
  local key = adoption.source .. job.id
  job.family = redis.call('EXISTS', key .. ':logs', key .. ':dependencies', key .. ':processed', key .. ':failed', key .. ':unsuccessful')
  if job.family > 0 and not Bull.are_family_types(key) then return 'unreadable' end
  if job.deid then job.next = next_of(adoption, job) end
  return job.next == false and 'next' or nil
end

-- What the job of a scheduler says of it. BullMQ 5 had options that BullMQ 6 has not: of `utc`, which outdid `tz`, the words change.
local function read_repeat(job)
  local ok, opts = pcall(cjson.decode, job.opts or '{}')
  local repeats = ok and type(opts) == 'table' and type(opts['repeat']) == 'table' and opts['repeat'] or {}
  job.repeats = repeats
  if repeats.utc == true then
    local told = type(repeats.tz) == 'string' and '"tz":"[^"]*"' or '"utc":true'
    job.opts, repeats.tz = job.opts:gsub(told, '"tz":"UTC"', 1), 'UTC'
    job.scheduler.fields.tz = nil
  end
  return (tonumber(repeats.nthDayOfWeek) or 0) ~= 0 and 'nth' or nil
end

-- Says why a job cannot come, or notes that it will. score: in the sorted set that it lies in; nil in a list.
local function consider(queue, id, place, score)
  local adoption = queue.adoption
  local job = Bull.read_job(adoption.source, id)
  if not job then return id:sub(1, 2) == '0:' and 'marker' or 'missing' end
  job.id, job.score, job.rank = id, score, amount(job.priority) or 0
  job.data = job.data or '{}'
  local why = read_around(adoption, job)
  if why then return why end
  job.scheduler = scheduler_of(adoption, job, place)
  if job.scheduler then
    -- of a scheduler that was made by a version before 5, ids are not made from its own
    job.new_id = 'repeat:' .. job.rjk .. ':' .. State.whole(job.scheduler.slot)
    if redis.call('HEXISTS', queue.base .. 'scheduler', job.rjk) == 1 then return 'scheduler' end
    why = read_repeat(job)
    if why then return why end
  end
  job.new_id = job.new_id or id
  if is_taken(queue, job.new_id) then return 'exists' end
  adoption.bytes = adoption.bytes + #job.data + #(job.opts or '') + #(job.returnvalue or '') + #(job.stacktrace or '')
  adoption.jobs[#adoption.jobs + 1] = job
  return nil
end

local function add(list, ...)
  local n = #list
  for i = 1, select('#', ...) do list[n + i] = select(i, ...) end
end

-- What lies beside a job in keys of its own.
local function move_family(queue, job, place, fields)
  local source, base, id = queue.adoption.source, queue.base, job.new_id
  local key, count = source .. job.id, job.family
  if count == 0 and place ~= 'waiting-children' then return end
  if redis.call('EXISTS', key .. ':logs') == 1 then
    redis.call('RENAME', key .. ':logs', base .. 'logs:' .. id)
    redis.call('SADD', base .. 'logged', id)
    count = count - 1
  end
  if count == 0 and place ~= 'waiting-children' then return end
  fields.ch = 1
  queue.flows = 1
  redis.call('SADD', base .. 'parents', id)
  for _, names in ipairs(FAMILY) do
    if redis.call('EXISTS', key .. names[1]) == 1 then redis.call('RENAME', key .. names[1], base .. names[2] .. id) end
  end
  if redis.call('EXISTS', key .. ':dependencies') == 1 then
    -- it stays in BullMQ, for those that its workers end
    redis.call('SUNIONSTORE', base .. 'children:' .. id, key .. ':dependencies')
    redis.call('SADD', source .. 'moved-parents', job.id)
  end
end

-- A deduplication id goes with the job that owns it, for the time it has left.
local function move_owned(queue, job)
  local source = queue.adoption.source
  local key, own = source .. 'de:' .. job.deid, queue.base .. 'de:' .. job.deid
  if job.next then redis.call('DEL', source .. 'dn:' .. job.deid) end
  if Bull.owner_of(source, job.deid) ~= job.id then return end
  local left = redis.call('PTTL', key)
  if left >= 0 then
    redis.call('SET', own, job.new_id, 'PX', math.max(left, 1), 'NX')
  else
    redis.call('SET', own, job.new_id, 'NX')
  end
  redis.call('DEL', key)
end

-- What is nested too deep, or no number, cannot be written.
local function encoded(fields)
  local ok, text = pcall(cjson.encode, fields)
  return ok and next(fields) and text or '{}'
end

-- The options that a scheduler's jobs have besides those of the iteration. Schedulers of versions before 5 do not store them themselves.
local function template_of(job)
  local ok, opts = pcall(cjson.decode, job.opts or '{}')
  if not ok or type(opts) ~= 'table' then return '{}' end
  for _, own in ipairs({ 'repeat', 'delay', 'timestamp', 'jobId', 'prevMillis', 'repeatJobKey' }) do opts[own] = nil end
  if opts.attempts == 0 then opts.attempts = nil end
  return encoded(opts)
end

local function move_scheduler(queue, job)
  local scheduler, source = job.scheduler, queue.adoption.source
  local fields, id = scheduler.fields, scheduler.id
  local of_job, repeats = job.repeats, {}
  for _, name in ipairs({ 'pattern', 'tz' }) do repeats[name] = fields[name] or of_job[name] end
  for _, name in ipairs({ 'startDate', 'endDate', 'limit', 'every' }) do
    -- a date may be a text
    local text = fields[name] or of_job[name]
    local number = tonumber(text or nil)
    repeats[name] = number and number - number == 0 and number or text or nil
  end
  local every = amount(repeats.every) or 0
  local offset = amount(fields.offset) or (every > 0 and scheduler.slot % every or 0)
  local raw = struct.pack('<d', amount(fields.ic) or amount(of_job.count) or 1) .. cmsgpack.pack({ fields.name or job.name or '', fields.data or job.data,
    fields.opts or template_of(job), encoded(repeats), every, offset })
  redis.call('HSET', queue.base .. 'scheduler', id, raw)
  redis.call('ZADD', queue.base .. 'schedulers', scheduler.slot, id)
  redis.call('ZREM', source .. 'repeat', id)
  redis.call('UNLINK', source .. 'repeat:' .. id)
end

-- Where a job goes. Gives what is written of it only when all are known.
local function place_job(queue, job, place)
  local adoption, id = queue.adoption, job.new_id
  if place == 'delayed' then
    add(adoption.delayed, id)
    add(adoption.dues, math.min(math.max(math.floor((tonumber(job.score) or 0) / 4096), 0), MOST_DUE_MS))
  elseif place == 'prioritized' and job.rank ~= 0 then
    add(adoption.ranked, job.rank * Prioritized.PRIORITY_STEP + Prioritized.next_place(queue), id)
  elseif place == 'completed' or place == 'failed' or place == 'waiting-children' then
    add(adoption.scored, job.score, id)
    if place == 'completed' then queue.completed = queue.completed + 1 end
  else
    add(adoption.references, id)
  end
end

local function write_job(queue, job, place)
  local adoption, id = queue.adoption, job.new_id
  local fields, data, number = fields_of(job, place), job.data, tonumber(id:match('^[1-9]%d*$') or nil)
  -- what is added later gets a higher number
  if number and number < MOST_ID then queue.id = math.max(queue.id, number) end
  if #data > LARGE_DATA then
    add(adoption.large, 'd' .. id, data)
    data, fields.ld = '', #data
  end
  if job.returnvalue and #job.returnvalue > LARGE_RESULT then
    add(adoption.large, 'r' .. id, job.returnvalue)
    fields.lr = #job.returnvalue
  else
    fields.rv = job.returnvalue or nil
  end
  if job.stacktrace and job.stacktrace ~= '[]' and job.stacktrace ~= '' then add(adoption.traces, id, job.stacktrace) end
  if job.pa then
    fields.pa, queue.flows = job.pa, 1
    if job.parentKey then redis.pcall('SREM', job.parentKey .. ':dependencies', adoption.source .. job.id) end
  end
  move_family(queue, job, place, fields)
  if job.deid then move_owned(queue, job) end
  if job.scheduler then move_scheduler(queue, job) end
  if job.rank ~= 0 then Prioritized.expect_priorities(queue) end
  add(adoption.bodies, id, cmsgpack.pack({ amount(job.timestamp) or 0, job.opts or '{}', job.name or '', data,
    job.rank ~= 0 and job.rank or nil }))
  if next(fields) then add(adoption.fields, id, cmsgpack.pack(fields)) end
  place_job(queue, job, place)
  add(adoption.theirs, adoption.source .. job.id)
end

-- Writes the jobs that come, and takes them out of BullMQ's keys, all but the list or set that they were found in.
local function write(queue, place)
  local adoption, base = queue.adoption, queue.base
  for _, job in ipairs(adoption.jobs) do write_job(queue, job, place) end
  WaitingList.call_in_chunks('HSET', base .. 'jobs', adoption.bodies)
  WaitingList.call_in_chunks('HSET', base .. 'vitals', adoption.fields)
  WaitingList.call_in_chunks('HSET', base .. 'traces', adoption.traces)
  WaitingList.call_in_chunks('HSET', base .. 'large', adoption.large)
  WaitingList.call_in_chunks('ZADD', base .. 'prioritized', adoption.ranked)
  if #adoption.scored > 0 then WaitingList.call_in_chunks('ZADD', base .. place, adoption.scored) end
  if #adoption.references > 0 then WaitingList.append_references(queue, adoption.references) end
  local sooner = #adoption.delayed > 0 and Delayed.delay_jobs(queue, adoption.delayed, adoption.dues)
  if #adoption.references > 0 or #adoption.ranked > 0 or sooner then WaitingList.wake(queue) end
  for from = 1, #adoption.theirs, 1000 do
    redis.call('UNLINK', unpack(adoption.theirs, from, math.min(from + 999, #adoption.theirs)))
  end
end

return {
  start = start,
  consider = consider,
  write = write,
}
