-- bull: jobs as BullMQ 5 and 6 store them. What BullMQ's keys of a queue start with is called their source here: bull:mail:
--   wait paused active                                       lists of ids; what is next stands at the end. What waits in a paused queue of
--                      BullMQ 5 lies in paused, which takes the place of wait when it is resumed
--   prioritized delayed waiting-children completed failed    sorted sets of ids
--   <id>               hash of a job; logs, and what became of its children, lie beside it: <id>:logs, :dependencies, :processed, :failed,
--                      :unsuccessful
--   repeat repeat:<id> schedulers by their next slot, and a hash of each
--   de:<id>            the job that owns a deduplication id
--   dn:<id>            hash of a job that is added when that one has ended
--   moved-parents      ours: set of the parents that were moved while BullMQ's workers may still end children of theirs. BullMQ notes what
--                      becomes of those beside a parent that is gone, and starts nothing: settle_adopted tells it to the parent.
--   meta chasquimq     ours: 1 once its settings were taken over, 0 once ours were.
local Names = require('names')

local FIELDS = { 'name', 'data', 'opts', 'timestamp', 'delay', 'priority', 'processedOn', 'finishedOn', 'atm', 'attemptsMade', 'ats', 'stc',
  'progress', 'returnvalue', 'failedReason', 'stacktrace', 'parentKey', 'parent', 'rjk', 'deid', 'pb', 'defa' }
local NEXT_FIELDS = { 'name', 'data', 'opts', 'jid', 'pk' }
local SCHEDULER_FIELDS = { 'name', 'data', 'opts', 'tz', 'pattern', 'every', 'startDate', 'endDate', 'limit', 'offset', 'ic' }

local KINDS = { wait = 'list', paused = 'list', active = 'list', prioritized = 'zset', delayed = 'zset', ['waiting-children'] = 'zset',
  completed = 'zset', failed = 'zset', ['repeat'] = 'zset', ['moved-parents'] = 'set', meta = 'hash', id = 'string', pc = 'string', marker = 'zset',
  limiter = 'string', ['metrics:completed'] = 'hash', ['metrics:failed'] = 'hash', ['metrics:completed:data'] = 'list',
  ['metrics:failed:data'] = 'list' }
-- In BullMQ's settings, and what it says.
local MARK, ADOPTED, RETURNED = 'chasquimq', '1', '0'
-- Nobody counts further.
local MOST_ID = 1e14
-- What lies beside a job.
local KIN_KINDS = { [':logs'] = 'list', [':dependencies'] = 'set', [':processed'] = 'hash', [':failed'] = 'hash', [':unsuccessful'] = 'zset' }

-- Whether a key holds this, or nothing.
local function is_type(key, kind)
  local found = redis.pcall('TYPE', key).ok
  return found == 'none' or found == kind
end

-- Ends the call, which has written nothing yet: a key of BullMQ's holds what BullMQ does not write there.
local function require_types(source)
  for suffix, kind in pairs(KINDS) do
    local found = redis.call('TYPE', source .. suffix).ok
    if found ~= 'none' and found ~= kind then
      error({ err = 'WRONGTYPE Key ' .. source .. suffix .. ' holds a ' .. found .. ', which BullMQ does not write there' })
    end
  end
end

local function are_family_types(key)
  for suffix, kind in pairs(KIN_KINDS) do
    if not is_type(key .. suffix, kind) then return false end
  end
  return true
end

-- The texts of a MessagePack array. Ends the call where it is none.
local function read_texts(raw)
  local ok, texts = pcall(cmsgpack.unpack, raw or '')
  local sound = ok and type(texts) == 'table'
  for i = 1, sound and #texts or 0 do sound = sound and type(texts[i]) == 'string' end
  if not sound then error({ err = 'ERR expected an array of texts' }) end
  return texts
end

-- Ends the call where a word is not one of these.
local function require_word(words, word)
  for _, known in ipairs(words) do
    if word == known then return end
  end
  error({ err = 'ERR no jobs are moved from ' .. (type(word) == 'string' and word or type(word)) })
end

-- The last number that a job got. Ends the call where that is none.
local function last_number(source)
  local raw = redis.call('GET', source .. 'id')
  local last = tonumber(raw or 0)
  if not last or last ~= math.floor(last) or last < 0 or last > MOST_ID then
    error({ err = 'ERR Key ' .. source .. 'id holds no number of a job' })
  end
  return last
end

-- Ends the call where the places of jobs with a priority cannot be counted on.
local function require_counter(source)
  local raw = redis.call('GET', source .. 'pc')
  if not raw or (raw:match('^%-?%d+$') and math.abs(tonumber(raw)) < 2 ^ 62) then return end
  error({ err = 'ERR Key ' .. source .. 'pc holds no number' })
end

-- The list of the jobs that wait.
local function waiting_list_of(source)
  local found = redis.call('HMGET', source .. 'meta', 'paused', 'version')
  return found[1] and (found[2] or ''):match('^bullmq:5%.') and 'paused' or 'wait'
end

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

-- The job that owns a deduplication id; nil when there is none.
local function owner_of(source, deduplication)
  local owner = redis.pcall('GET', source .. 'de:' .. deduplication)
  return type(owner) == 'string' and owner or nil
end

-- What is added when that job has ended, as read_job.
local function read_next(source, deduplication) return read_fields(source .. 'dn:' .. deduplication, NEXT_FIELDS) end

local function read_scheduler(source, id) return read_fields(source .. 'repeat:' .. id, SCHEDULER_FIELDS) or {} end

local LETTERS = { { 'fpof', 'f' }, { 'cpof', 'c' }, { 'idof', 'i' }, { 'rdof', 'r' } }

-- A child's parent as our state fields hold it (states/parents), by the JSON text that BullMQ stores, and its key; nil when it cannot be read.
local function parent_of(text)
  local ok, parent = pcall(cjson.decode, text)
  if not ok or type(parent) ~= 'table' or type(parent.queueKey) ~= 'string'
    or (type(parent.id) ~= 'string' and type(parent.id) ~= 'number') then return nil end
  local policy = ''
  for _, letter in ipairs(LETTERS) do
    if policy == '' and parent[letter[1]] == true then policy = letter[2] end
  end
  local id = type(parent.id) == 'number' and string.format('%d', parent.id) or parent.id
  return { Names.base_of(parent.queueKey), id, policy }, parent.queueKey .. ':' .. id
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
  MARK = MARK,
  ADOPTED = ADOPTED,
  RETURNED = RETURNED,
  is_type = is_type,
  require_types = require_types,
  are_family_types = are_family_types,
  read_texts = read_texts,
  require_word = require_word,
  last_number = last_number,
  require_counter = require_counter,
  waiting_list_of = waiting_list_of,
  read_job = read_job,
  owner_of = owner_of,
  read_next = read_next,
  read_scheduler = read_scheduler,
  parent_of = parent_of,
  split_key = split_key,
}
