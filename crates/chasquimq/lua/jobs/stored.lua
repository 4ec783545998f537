-- stored: reads the MessagePack that lies under the queue's names. What is not of the form that we write raises nothing, which would
-- leave a call half done, and the queue for ever where it is: a job that cannot be read is failed by the worker that takes it.
--   fields(raw)            state fields of a record, what changed about it since it was added (hash vitals, as the first release called them);
--                          raw: nil or false = it has none. Those that cannot be read say that the job is to fail.
--   active(raw)            who holds a record: {started_ms, starts, owner, worker_name, claim}. What cannot be read is nobody's.
--   run(raw)               rules/retention; nil when it cannot be read
--   list(raw)              an array; an empty one when it cannot be read
--   ids(blob)              those in an entry of references that can be read
--   body(raw)              a record's body; the name and data of one that cannot be read are empty
--   read_body(raw)         the same; nil when it cannot be read
--   start(fields, active)  notes in a record's state fields when, how often and by whom it was started
--   is_taken_late(raw)     whether a record is not to be taken in advance: it has stalled, or is a suspect (transitions/recover_stalled), or has limits
--                          (rules/key_limits), which count its start when it is taken
--   has_traces(fields)     whether a record has stack traces: an error without a message has them, too
--   complete(fields, active, value, now_ms)  notes that it has completed; value: its result, JSON text ('' or nil: none)
--   timestamp(blob, offset) the time with which a body or a frame starts
local ForeignEntries = require('foreign_entries')

local FIELD_KINDS = { am = 'number', as = 'number', st = 'number', po = 'number', fo = 'number', d = 'number', ws = 'number', pr = 'number',
  ld = 'number', lr = 'number', su = 'number', ex = 'number', du = 'number', kr = 'number', p = 'string', rv = 'string', fr = 'string', df = 'string', pb = 'string', tr = 'string', di = 'string', pa = 'table',
  nx = 'table', hd = 'table', kl = 'table', ku = 'table' }
local ACTIVE_KINDS = { 'number', 'number', 'string', 'string' }
local RUN_KINDS = { 'number', 'number', 'number', 'number', 'string', 'string' }
local BODY_KINDS, PARENT_KINDS = { 'number' }, { 'string', 'string', 'string' }
local SPAN_KINDS, LIMIT_KINDS = { 'number', 'number' }, { 'string', 'number', 'number', 'number' }
-- Why a job fails whose state fields are of another form.
local UNREADABLE = 'could not be read: a job\'s state fields'
local NEXT_KINDS, NEXT_ITEM_KINDS = { 'table', 'string' }, { 'number', 'string', 'string', 'number', 'number', 'table', 'number' }

local function are_types(list, kinds)
  for i = 1, #kinds do
    if type(list[i]) ~= kinds[i] then return false end
  end
  return true
end

local function read_list(raw, kinds)
  if not raw then return nil end
  local ok, list = pcall(cmsgpack.unpack, raw)
  return ok and type(list) == 'table' and are_types(list, kinds) and list or nil
end

local function is_field(field, value)
  local kind = FIELD_KINDS[field]
  if not kind then return true end
  if type(value) ~= kind then return false end
  -- neither NaN nor infinite
  if kind == 'number' then return value - value == 0 end
  if field == 'kl' then
    for i = 1, #value do
      if type(value[i]) ~= 'table' or not are_types(value[i], LIMIT_KINDS) then return false end
    end
    return true
  end
  if field == 'hd' then
    for i = 1, #value do
      if type(value[i]) ~= 'string' then return false end
    end
    return true
  end
  if field == 'pa' then
    return are_types(value, PARENT_KINDS) and ((value[4] == nil and value[5] == nil) or are_types({ value[4], value[5] }, SPAN_KINDS))
  end
  return field ~= 'nx' or (are_types(value, NEXT_KINDS) and are_types(value[1], NEXT_ITEM_KINDS)
    and type(value[1][6][1]) == 'string' and read_list(value[2], BODY_KINDS) ~= nil)
end

local function fields(raw)
  local fields = raw and read_list(raw, {}) or (raw and { df = 1 }) or {}
  for field, value in pairs(fields) do
    if not is_field(field, value) then return { df = UNREADABLE } end
  end
  return fields
end

local function active(raw) return read_list(raw, ACTIVE_KINDS) or { 0, 1, '', '', 0 } end

local function run(raw)
  local run = read_list(raw, RUN_KINDS)
  local sound = run and run[1] >= 1 and run[1] <= 64 and run[2] >= 1 and run[2] < 2 ^ 53 and run[3] >= 1 and run[3] <= 64
  if run and type(run[7]) ~= 'string' then run[7] = nil end
  return sound and run or nil
end

local function list(raw) return read_list(raw, {}) or {} end
local function read_body(raw) return read_list(raw, BODY_KINDS) end
local function body(raw) return read_body(raw) or { 0, '{}', '', '{}' } end

local function ids(blob)
  local ids = read_list(blob, {}) or { 0 }
  local sound = true
  for i = 1, #ids do sound = sound and type(ids[i]) == 'string' end
  if sound then return ids end
  return ForeignEntries.readable_ids(blob)
end

local function start(fields, active)
  fields.po, fields.as = active[1], active[2]
  -- a worker without a name leaves that of the one before
  if active[4] ~= '' then fields.pb = active[4] end
end

local function is_taken_late(raw)
  if not raw then return false end
  local ok, fields = pcall(cmsgpack.unpack, raw)
  return ok and type(fields) == 'table' and ((tonumber(fields.st) or 0) > 0 or fields.su ~= nil or fields.kl ~= nil)
end

local function has_traces(fields) return fields.fr or fields.tr end

local function complete(fields, active, value, now_ms)
  start(fields, active)
  fields.am, fields.fo, fields.rv, fields.d, fields.df = (fields.am or 0) + 1, now_ms, value ~= '' and value or nil, nil, nil
end

local function timestamp(blob, offset)
  local ok, _, timestamp = pcall(cmsgpack.unpack_one, blob, offset)
  return ok and type(timestamp) == 'number' and timestamp or 0
end

return {
  UNREADABLE = UNREADABLE,
  fields = fields,
  active = active,
  run = run,
  list = list,
  body = body,
  read_body = read_body,
  ids = ids,
  start = start,
  is_taken_late = is_taken_late,
  has_traces = has_traces,
  complete = complete,
  timestamp = timestamp,
}
