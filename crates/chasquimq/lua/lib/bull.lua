-- bull: jobs as BullMQ 5 and 6 store them. What BullMQ's keys of a queue start with is called their source here: bull:mail:
--   wait paused active                                       lists of ids; what is next stands at the end
--   prioritized delayed waiting-children completed failed    sorted sets of ids
--   <id>               hash of a job; logs, and what became of its children, lie beside it: <id>:logs, :dependencies, :processed, :failed,
--                      :unsuccessful
--   repeat repeat:<id> schedulers by their next slot, and a hash of each
--   de:<id>            the job that owns a deduplication id
--   moved-parents      ours: set of the parents that were moved while BullMQ's workers may still end children of theirs. BullMQ notes what
--                      becomes of those beside a parent that is gone, and starts nothing: settle_adopted tells it to the parent.
local FIELDS = { 'name', 'data', 'opts', 'timestamp', 'delay', 'priority', 'processedOn', 'finishedOn', 'atm', 'attemptsMade', 'ats', 'stc',
  'progress', 'returnvalue', 'failedReason', 'stacktrace', 'parentKey', 'parent', 'rjk', 'deid', 'pb', 'defa' }
local SCHEDULER_FIELDS = { 'name', 'data', 'opts', 'tz', 'pattern', 'every', 'startDate', 'endDate', 'limit', 'offset', 'ic' }

local function read_fields(key, fields)
  local values = redis.pcall('HMGET', key, unpack(fields))
  if values.err then return nil end
  local read, any = {}, false
  for i, field in ipairs(fields) do
    read[field] = values[i]
    any = any or values[i]
  end
  return any and read or nil
end

-- A job's fields by name, false where there is none; nil when nothing is stored under the key.
local function read_job(source, id) return read_fields(source .. id, FIELDS) end

local function read_scheduler(source, id) return read_fields(source .. 'repeat:' .. id, SCHEDULER_FIELDS) or {} end

-- What the keys of our queue of this name, <prefix>:<queue>, start with (src/keys.rs).
local function base_of(name)
  local prefix = name:match('^(.*):[^:]*$') or ''
  local open = prefix:find('{', 1, true)
  local close = open and prefix:find('}', open, true)
  return close and close - open > 1 and name .. ':chasqui:' or '{' .. name .. '}:'
end

local LETTERS = { { 'fpof', 'f' }, { 'cpof', 'c' }, { 'idof', 'i' }, { 'rdof', 'r' } }

-- A child's parent as our state fields hold it (lib/parents), by the JSON text that BullMQ stores; nil when it cannot be read.
local function parent_of(text)
  local ok, parent = pcall(cjson.decode, text)
  if not ok or type(parent) ~= 'table' or type(parent.queueKey) ~= 'string'
    or (type(parent.id) ~= 'string' and type(parent.id) ~= 'number') then return nil end
  local policy = ''
  for _, letter in ipairs(LETTERS) do
    if policy == '' and parent[letter[1]] == true then policy = letter[2] end
  end
  return { base_of(parent.queueKey), type(parent.id) == 'number' and string.format('%d', parent.id) or parent.id, policy }
end

-- The source and the id in the key of a job, of one of these queues or of another with the prefix of this one.
local function split_key(key, source, sources)
  for _, known in ipairs(sources) do
    if key:sub(1, #known) == known then return known, key:sub(#known + 1) end
  end
  local prefix = source:match('^(.*:)[^:]*:$') or ''
  local name, id = key:sub(#prefix + 1):match('^([^:]+:)(.+)$')
  if key:sub(1, #prefix) ~= prefix or not name then return nil end
  return prefix .. name, id
end

return {
  read_job = read_job,
  read_scheduler = read_scheduler,
  base_of = base_of,
  parent_of = parent_of,
  split_key = split_key,
}
