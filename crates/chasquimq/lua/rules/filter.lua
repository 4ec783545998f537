-- filter: which of many records an operation is about, by age, name or error. A step reads no more of them than jobs/read_budget says.
-- A filter is {after_ms, before_ms, names, error, by_creation}: times in epoch ms, -1 = any; names: {[name] = true}, nil = any; error: a text within
-- the failed reason, '' = any; by_creation: only that counts for a job's age.
local ReadBudget = require('read_budget')
local Stored = require('stored')

-- The time by which a job's age counts, from its record: last finish, last start, or creation.
local function reference_time(filter, body, fields)
  if fields and not filter.by_creation then
    if fields.fo then return fields.fo end
    if fields.po then return fields.po end
  end
  return Stored.timestamp(body, 1)
end

local function is_picked(filter, body, fields)
  if filter.before_ms >= 0 and reference_time(filter, body, fields) > filter.before_ms then return false end
  if filter.after_ms >= 0 and reference_time(filter, body, fields) < filter.after_ms then return false end
  if filter.names then
    local ok, _, _, _, name = pcall(cmsgpack.unpack_limit, body, 3, 1)
    if not ok or type(name) ~= 'string' or not filter.names[name] then return false end
  end
  return filter.error == '' or ((fields and fields.fr or ''):find(filter.error, 1, true) ~= nil)
end

local function picks_all(filter)
  return filter.before_ms < 0 and filter.after_ms < 0 and not filter.names and filter.error == ''
end

-- Says of each of these records whether it is picked, in order, for as many as may be read: {true, false, ...}.
local function pick_records(queue, filter, ids)
  local picked = {}
  if picks_all(filter) then
    for i = 1, #ids do picked[i] = true end
    return picked
  end
  if #ids == 0 then return picked end
  local last = ReadBudget.last_fitting(queue, { 'jobs', 'vitals' }, ids, 1, 0)
  local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(ids, 1, last))
  local fields = ReadBudget.has_hash(queue, 'vitals') and redis.call('HMGET', queue.base .. 'vitals', unpack(ids, 1, last)) or {}
  for i = 1, last do
    picked[i] = bodies[i] and is_picked(filter, bodies[i], fields[i] and Stored.fields(fields[i])) or false
  end
  return picked
end

return {
  picks_all = picks_all,
  pick_records = pick_records,
}
