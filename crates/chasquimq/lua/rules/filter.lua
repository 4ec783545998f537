-- filter: which of many jobs an operation is about. A step reads no more of them than jobs/read_budget says.
-- A filter is a table of what must be true of a job, all of it; what is absent says nothing:
--   after_ms, before_ms  its time (epoch ms, -1 = any) is this one, or later, or earlier. Its time: its last finish, last start, or creation; by_creation: that
--           alone; by_place: it is its place in the set that is walked, and is not asked for here
--   names   {[name] = true}: its name is one of these
--   data    its data, JSON text, contain this text, letter for letter
--   fields  JSON text of an object: its data have these fields, with these values; an object within it is a part of the one there
--   reason  its failed reason contains this text, letter for letter
--   group   it is of this group
--   parent  {base of its queue, id}: it is a child of this job
local Frame = require('frame')
local Groups = require('groups')
local Locate = require('locate')
local ReadBudget = require('read_budget')
local Stored = require('stored')

-- The time by which a job's age counts.
local function reference_time(filter, created, fields)
  if fields and not filter.by_creation then
    if fields.fo then return fields.fo end
    if fields.po then return fields.po end
  end
  return created
end

local function is_in_time(filter, created, fields)
  local time = reference_time(filter, created, fields)
  return (filter.before_ms < 0 or time <= filter.before_ms) and (filter.after_ms < 0 or time >= filter.after_ms)
end

local function asks_for_time(filter)
  return not filter.by_place and (filter.before_ms >= 0 or filter.after_ms >= 0)
end

local function asks_for_data(filter)
  return filter.data ~= nil or filter.fields ~= nil
end

-- Whether it is about what jobs hold, and not only about where they are.
local function asks_for_values(filter)
  return asks_for_data(filter) or filter.names ~= nil or filter.reason ~= nil or filter.group ~= nil or filter.parent ~= nil
end

local function picks_all(filter)
  return not asks_for_time(filter) and not asks_for_values(filter)
end

-- Whether one value of JSON is another, or an object has what the other has.
local function has(value, wanted)
  if type(wanted) ~= 'table' then return value == wanted end
  if type(value) ~= 'table' then return false end
  -- two lists are alike, or differ
  if #wanted ~= #value and (#wanted > 0 or next(wanted) == nil) then return false end
  for name, part in pairs(wanted) do
    if not has(value[name], part) then return false end
  end
  return true
end

-- The data of a located job, JSON text; values: of its body.
local function data_of(queue, job, values)
  local fields = job.fields
  if not (job.record and fields.ld) then return values[4] end
  return redis.call('HGET', queue.base .. 'large', 'd' .. job.id)
end

local function has_data(queue, filter, job, values)
  local data = data_of(queue, job, values)
  if type(data) ~= 'string' then return false end
  if filter.data and not data:find(filter.data, 1, true) then return false end
  if not filter.fields then return true end
  filter.wanted = filter.wanted or cjson.decode(filter.fields)
  local ok, value = pcall(cjson.decode, data)
  return ok and has(value, filter.wanted)
end

-- What a job's body holds: timestamp, options, name, data, priority, group. Those of one frame are read once.
local function values_of(queue, job)
  if job.record then return Stored.read_body(job.body) or {} end
  local read = queue.filtered_frame
  if not read or read.first ~= job.first then
    read = { first = job.first }
    local values = Frame.frame_values(queue, job.first, job.blob)
    for i = 0, job.n - 1 do read[i] = { values(i) } end
    queue.filtered_frame = read
  end
  -- a run may tell of more jobs than its frame has
  return read[job.offset] or {}
end

-- Whether a located job is picked. Of a record `body` and `fields` (state fields) are there.
local function picks(queue, filter, job)
  if picks_all(filter) then return true end
  local fields = job.fields or Locate.frame_fields(queue, job)
  if filter.reason and not (type(fields.fr) == 'string' and fields.fr:find(filter.reason, 1, true)) then return false end
  if filter.parent and not (fields.pa and fields.pa[1] == filter.parent[1] and fields.pa[2] == filter.parent[2]) then return false end
  if filter.group and Groups.group_of(job.body) ~= filter.group then return false end
  local values = values_of(queue, job)
  if asks_for_time(filter) and not is_in_time(filter, tonumber(values[1]) or 0, fields) then return false end
  if filter.names and not (type(values[3]) == 'string' and filter.names[values[3]]) then return false end
  return not asks_for_data(filter) or has_data(queue, filter, job, values)
end

-- Says of each of these records whether their times are those that are asked for, in order, for as many as may be read: {true, false, ...}.
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
    picked[i] = bodies[i] and is_in_time(filter, Stored.timestamp(bodies[i], 1), fields[i] and Stored.fields(fields[i])) or false
  end
  return picked
end

return {
  asks_for_data = asks_for_data,
  picks_all = picks_all,
  picks = picks,
  pick_records = pick_records,
}
