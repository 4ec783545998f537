-- restore: jobs of ours become BullMQ's (migrate/bull), in the same place, with all that is known of them. First they are looked at, which
-- changes nothing but says why one cannot go; then those that can are written, and taken out of our keys.
-- Of a queue: restoring, what the call is about to write: source, sources (of all queues that go back), waiting (the list of jobs that wait), jobs,
-- bytes.
local Bull = require('bull')
local Find = require('find')
local Locate = require('locate')
local Names = require('names')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Prioritized = require('prioritized')
local Schedulers = require('schedulers')
local SiblingRanges = require('sibling_ranges')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local FAMILY = { { 'processed:', ':processed' }, { 'ignored:', ':failed' }, { 'faults:', ':unsuccessful' } }
local SCHEDULER_KINDS = { 'string', 'string', 'string', 'string', 'number', 'number' }
local MARKS = { f = 'fpof', c = 'cpof', i = 'idof', r = 'rdof' }

local function start(queue, source, sources)
  queue.restoring = State.with_lists({ source = source, sources = sources, waiting = Bull.waiting_list_of(source), bytes = 0 })
end

-- Whether a parent of ours waits for a child that is ours still.
local function has_own_children(queue, id)
  if redis.call('EXISTS', queue.base .. 'spans:' .. id) == 1 then return true end
  for _, key in ipairs(redis.call('SMEMBERS', queue.base .. 'children:' .. id)) do
    local of, child = Bull.split_key(key, queue.restoring.source, queue.restoring.sources)
    local is_ours = of and OtherQueues.in_queue(queue, Names.base_of(of:sub(1, -2)), function(queue) return Find.locate(queue, child) ~= nil end)
    if is_ours then return true end
  end
  return false
end

-- Why a parent cannot go yet.
local function parent_stays(queue, id, state)
  if has_own_children(queue, id) then return 'children' end
  local key = queue.restoring.source .. id
  local is_told = redis.call('EXISTS', key .. ':processed', key .. ':failed', key .. ':unsuccessful') == 0
  local is_due = state == 'waiting-children' and redis.call('EXISTS', key .. ':dependencies') == 0
  return (not is_told or is_due) and 'unsettled' or nil
end

-- The scheduler whose pending iteration a job is: {id, slot, raw, fields (false: they cannot be read)}; nil of any other job.
local function scheduler_of(queue, id)
  local scheduler, slot = id:match('^repeat:(.+):(%d+)$')
  if not scheduler or tonumber(redis.call('ZSCORE', queue.base .. 'schedulers', scheduler) or nil) ~= tonumber(slot) then return nil end
  local raw = redis.call('HGET', queue.base .. 'scheduler', scheduler)
  if not raw then return nil end
  local ok, _, fields = pcall(cmsgpack.unpack_limit, raw, 1, 8)
  local sound = ok and type(fields) == 'table' and #raw > 8
  for i, kind in ipairs(SCHEDULER_KINDS) do sound = sound and type(fields[i]) == kind end
  -- BullMQ knows no paused ones: it stays, and its last iteration, which has started before, goes as any job
  if sound and fields[Schedulers.HELD] then return nil end
  return { id = scheduler, slot = slot, raw = raw, fields = sound and fields }
end

local function is_sound(body, fields)
  local opts = type(body[2])
  return type(body[4]) == 'string' and (body[3] == nil or type(body[3]) == 'string') and (opts == 'nil' or opts == 'string' or opts == 'number')
    and body[1] - body[1] == 0 and fields.df ~= Stored.UNREADABLE and (fields.rv == nil or type(fields.rv) == 'string')
end

-- Whether what BullMQ has where this job goes may be written to.
local function has_room(restoring, job)
  local source, fields = restoring.source, job.fields
  if fields.di and fields.nx and not Bull.is_type(source .. 'dn:' .. fields.di, 'hash') then return false end
  if not fields.pa then return true end
  local of = Names.name_of(fields.pa[1]) .. ':'
  return Bull.is_type(of .. fields.pa[2] .. ':dependencies', 'set') and Bull.is_type(of .. 'moved-parents', 'set')
end

-- Says why a job cannot go, or notes that it will. score: in the sorted set that it lies in; nil: it waits.
local function consider(queue, id, score)
  local restoring = queue.restoring
  local found = Find.locate(queue, id)
  if not found then return 'missing' end
  local scheduler = (found.state == 'waiting' or found.state == 'prioritized' or found.state == 'delayed') and scheduler_of(queue, id) or nil
  if scheduler and redis.call('EXISTS', restoring.source .. 'repeat:' .. scheduler.id) == 1 then return 'scheduler' end
  local key = restoring.source .. id
  if redis.call('EXISTS', key, key .. ':logs') > 0 then return 'exists' end
  local fields = found.record and Stored.fields(redis.call('HGET', queue.base .. 'vitals', id)) or Locate.frame_fields(queue, found)
  local body = Stored.read_body(found.record and found.body or Locate.frame_body(queue, found))
  local job = { id = id, score = score, state = found.state, record = found.record, body = body, fields = fields }
  if not body or not is_sound(body, fields) or not has_room(restoring, job) then return 'unreadable' end
  local why = fields.ch and parent_stays(queue, id, found.state)
  if why then return why end
  if scheduler and not scheduler.fields then return 'unreadable' end
  job.scheduler = scheduler
  restoring.bytes = restoring.bytes + #body[4] + (fields.ld or 0) + (fields.lr or 0) + #(fields.rv or '')
  restoring.jobs[#restoring.jobs + 1] = job
  return nil
end

local function options_of(body)
  return type(body[2]) == 'number' and '{"delay":' .. State.whole(body[2]) .. '}' or body[2] or '{}'
end

local function delay_of(job, options)
  if job.state ~= 'delayed' and job.state ~= 'waiting-children' then return 0 end
  if job.fields.d then return job.fields.d end
  local ok, read = pcall(cjson.decode, options)
  return job.state == 'delayed' and ok and type(read) == 'table' and tonumber(read.delay) or 0
end

-- A child's parent goes on waiting for it, wherever either of them is.
local function leave_parent(queue, job)
  local pa, id = job.fields.pa, job.id
  if pa[4] then
    local range = Parents.range_of(queue, queue.base, id, pa)
    SiblingRanges.unfold_pending(pa[1], pa[2], range)
    SiblingRanges.unfold_returned(pa[1], pa[2], range)
  end
  local key = Parents.child_key(queue, queue.base, id)
  if redis.call('SISMEMBER', pa[1] .. 'children:' .. pa[2], key) == 0 then return end
  local source = Names.name_of(pa[1]) .. ':'
  redis.call('SADD', source .. pa[2] .. ':dependencies', key)
  redis.call('SADD', source .. 'moved-parents', pa[2])
end

-- What lies beside a job in keys of its own.
local function move_family(queue, job)
  local base, source, id = queue.base, queue.restoring.source, job.id
  local key = source .. id
  if redis.call('EXISTS', base .. 'logs:' .. id) == 1 then redis.call('RENAME', base .. 'logs:' .. id, key .. ':logs') end
  if not job.fields.ch then return end
  for _, range in ipairs(redis.call('HKEYS', base .. 'returned:' .. id)) do SiblingRanges.unfold_returned(base, id, range) end
  for _, names in ipairs(FAMILY) do
    if redis.call('EXISTS', base .. names[1] .. id) == 1 then redis.call('RENAME', base .. names[1] .. id, key .. names[2]) end
  end
  redis.call('SREM', source .. 'moved-parents', id)
end

local function move_owned(queue, id, deduplication)
  local key, own = queue.restoring.source .. 'de:' .. deduplication, queue.base .. 'de:' .. deduplication
  if redis.call('GET', own) ~= id then return end
  local left = redis.call('PTTL', own)
  if left >= 0 then redis.call('SET', key, id, 'PX', math.max(left, 1), 'NX') else redis.call('SET', key, id, 'NX') end
  redis.call('DEL', own)
end

-- Options as BullMQ's scripts read them: they know what a job deduplicates by its short name alone.
local function with_short_names(options)
  local ok, read = pcall(cjson.decode, options)
  if not ok or type(read) ~= 'table' or not read.deduplication then return options end
  read.de, read.deduplication = read.deduplication, nil
  local is_text, text = pcall(cjson.encode, read)
  return is_text and text or options
end

-- What is to be added when the owner of a deduplication id has ended (rules/deduplication).
local function move_next(queue, fields)
  local item, body = fields.nx[1], Stored.body(fields.nx[2])
  redis.call('HSET', queue.restoring.source .. 'dn:' .. fields.di, 'name', body[3] or '', 'data', body[4] or '{}',
    'opts', with_short_names(options_of(body)), 'jid', item[2])
end

local function move_scheduler(queue, scheduler)
  local base, source, id, fields = queue.base, queue.restoring.source, scheduler.id, scheduler.fields
  local args = { 'name', fields[1], 'ic', State.whole((struct.unpack('<d', scheduler.raw))) }
  if fields[2] ~= '{}' then WaitingList.append(args, 'data', fields[2]) end
  if fields[3] ~= '{}' then WaitingList.append(args, 'opts', fields[3]) end
  local ok, repeats = pcall(cjson.decode, fields[4])
  for name, value in pairs(ok and type(repeats) == 'table' and repeats or {}) do
    if type(value) == 'number' then WaitingList.append(args, name, State.whole(value)) elseif type(value) == 'string' then WaitingList.append(args, name, value) end
  end
  WaitingList.append(args, 'offset', State.whole(fields[6]))
  redis.call('HSET', source .. 'repeat:' .. id, unpack(args))
  redis.call('ZADD', source .. 'repeat', scheduler.slot, id)
  redis.call('ZREM', base .. 'schedulers', id)
  redis.call('HDEL', base .. 'scheduler', id)
  redis.call('HDEL', base .. 'scheduler-runs', id)
end

local NUMBERS = { am = 'atm', as = 'ats', st = 'stc', po = 'processedOn', fo = 'finishedOn' }
local TEXTS = { p = 'progress', rv = 'returnvalue', fr = 'failedReason', pb = 'pb', df = 'defa', di = 'deid' }

local function add_fields(queue, args, job)
  local fields, id = job.fields, job.id
  for field, name in pairs(NUMBERS) do
    if fields[field] then WaitingList.append(args, name, State.whole(fields[field])) end
  end
  for field, name in pairs(TEXTS) do
    if fields[field] then WaitingList.append(args, name, fields[field]) end
  end
  if fields.lr then WaitingList.append(args, 'returnvalue', redis.call('HGET', queue.base .. 'large', 'r' .. id) or 'null') end
  local traces = job.record and redis.call('HGET', queue.base .. 'traces', id)
  if traces then WaitingList.append(args, 'stacktrace', traces) end
  if fields.pa then
    local parent = { id = fields.pa[2], queueKey = Names.name_of(fields.pa[1]) }
    if MARKS[fields.pa[3]] then parent[MARKS[fields.pa[3]]] = true end
    WaitingList.append(args, 'parentKey', parent.queueKey .. ':' .. parent.id, 'parent', cjson.encode(parent))
  end
end

-- Where a job goes in BullMQ: {command, list or set, score}. What is next stands at the end of a list.
local function enter(restoring, job, priority)
  local source, id = restoring.source, job.id
  if job.state == 'waiting' and priority == 0 then
    redis.call('LPUSH', source .. restoring.waiting, id)
  elseif job.state == 'waiting' or job.state == 'prioritized' then
    redis.call('ZADD', source .. 'prioritized', priority * Prioritized.PRIORITY_STEP + redis.call('INCR', source .. 'pc') % Prioritized.PRIORITY_STEP, id)
  else
    local is_ended = job.state == 'completed' or job.state == 'failed'
    redis.call('ZADD', source .. job.state, is_ended and State.whole(math.floor(tonumber(job.score))) or job.score, id)
  end
end

local function write_job(queue, job)
  local source, id, body, fields = queue.restoring.source, job.id, job.body, job.fields
  local options, data = options_of(body), body[4]
  if fields.ld then data = redis.call('HGET', queue.base .. 'large', 'd' .. id) or '{}' end
  -- that of a job with a group is one in the group
  local priority = body[6] and 0 or fields.pr or tonumber(body[5]) or 0
  local args = { 'name', body[3] or '', 'data', data, 'opts', options, 'timestamp', State.whole(body[1]), 'delay',
    State.whole(delay_of(job, options)), 'priority', State.whole(priority) }
  add_fields(queue, args, job)
  local scheduler = options:find('"repeat":{', 1, true) and id:match('^repeat:(.+):%d+$')
  if scheduler then WaitingList.append(args, 'rjk', scheduler) end
  if fields.pa then leave_parent(queue, job) end
  move_family(queue, job)
  if fields.di then move_owned(queue, id, fields.di) end
  if fields.di and fields.nx then move_next(queue, fields) end
  if job.scheduler then move_scheduler(queue, job.scheduler) end
  redis.call('HSET', source .. id, unpack(args))
  enter(queue.restoring, job, priority)
end

-- Writes these jobs; taking them out of our keys is for the caller.
local function write(queue, jobs)
  for _, job in ipairs(jobs) do write_job(queue, job) end
  local source = queue.restoring.source
  if redis.call('HEXISTS', source .. 'meta', 'paused') == 1 then return end
  -- BullMQ's workers wait for these
  if redis.call('EXISTS', source .. 'wait', source .. 'prioritized') > 0 then redis.call('ZADD', source .. 'marker', 0, '0') end
  local next_due = redis.call('ZRANGE', source .. 'delayed', 0, 0, 'WITHSCORES')[2]
  if next_due then redis.call('ZADD', source .. 'marker', State.whole(math.floor(tonumber(next_due) / 4096)), '1') end
end

return {
  start = start,
  consider = consider,
  write = write,
}
