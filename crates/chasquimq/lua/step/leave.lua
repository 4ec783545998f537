-- leave: a job leaves the active ones: its outcome's claim (jobs/frame) must hold it still, or the outcome is refused.
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local Large = require('large')
local Packed = require('packed')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- Why an outcome is refused.
local JOB_MISSING, LOCK_MISSING, LOCK_MISMATCH = -1, -2, -6

-- State fields of a child that is at its first try hold nothing but its parent; those of siblings are equal.
local FRESH_CHILD = '\129\162pa'

-- Ids whose fields are read without asking first whether the hash is there.
local FEW = 8

-- Of what is said once for all jobs of an outcome, or once for each.
local function value_at(values, i)
  if type(values) == 'table' then return values[i] end
  return values
end

local function unpack_active(queue, raw)
  local finishing = queue.finishing
  local entry = finishing.unpacked_entries[raw]
  if not entry then
    entry = Stored.active(raw)
    finishing.unpacked_entries[raw] = entry
  end
  return entry
end

-- Whether records were taken together and had no state fields. Their entries are equal, but for the group behind what they have in common: behind so
-- many bytes, or nil.
local function are_alike(queue, active, fields)
  local first = active[1]
  if not first then return false end
  local group = unpack_active(queue, first)[7]
  local common = type(group) == 'string' and #first - #Packed.text(group)
  local same = common and first:sub(1, common)
  for i = 1, #active do
    local entry = active[i]
    if fields[i] or not (entry == first or (same and entry and entry:sub(1, common) == same)) then return false end
  end
  return true, common
end

-- The groups of such records, by id.
local function groups_behind(ids, active, common)
  local groups, names = {}, {}
  for i, id in ipairs(ids) do
    local text = active[i]:sub(common + 1)
    names[text] = names[text] or cmsgpack.unpack(text)
    groups[id] = names[text]
  end
  return groups
end

-- Notes a record's state fields. Those of jobs that failed alike, and of siblings at their first try, are equal, and read once.
local function note_fields(queue, id, raw)
  local finishing = queue.finishing
  if raw:sub(1, 4) == FRESH_CHILD then
    finishing.parents_in[raw] = finishing.parents_in[raw] or Stored.fields(raw).pa
    finishing.fields[id], finishing.equal[id] = { pa = finishing.parents_in[raw] }, raw
    return
  end
  local fields = finishing.known_fields[raw] or Stored.fields(raw)
  finishing.fields[id] = fields
  -- what else these say is looked after job by job
  if fields.di or fields.ch or fields.nx or fields.hd then return end
  finishing.known_fields[raw], finishing.equal[id] = fields, raw
end

-- A record's state fields, to be changed.
local function own_fields(queue, id)
  local finishing = queue.finishing
  local fields = finishing.fields[id] or {}
  if not finishing.equal[id] then return fields end
  local own = {}
  for field, value in pairs(fields) do own[field] = value end
  return own
end

-- Reads what the outcomes are about in three calls, however many there are.
local function load(queue, outcomes)
  local finishing = queue.finishing
  local firsts, ids = {}, {}
  for _, outcome in ipairs(outcomes) do
    local kind, first = outcome[1], outcome[2]
    if first > 0 then
      if not finishing.frames[first] then
        finishing.frames[first] = { n = outcome[3] }
        firsts[#firsts + 1] = State.whole(first)
      end
    elseif kind == 'r' or kind == 'f' then
      for _, id in ipairs(outcome[6]) do ids[#ids + 1] = id end
    else
      ids[#ids + 1] = outcome[6]
    end
  end
  -- of few, asking whether there are any costs as much as reading them
  local has_fields = #ids > 0 and (#ids <= FEW or redis.call('EXISTS', queue.base .. 'vitals') == 1)
  for from = 1, #firsts, 4000 do
    local to = math.min(from + 3999, #firsts)
    for i, raw in ipairs(redis.call('HMGET', queue.base .. 'takes', unpack(firsts, from, to))) do
      finishing.frames[tonumber(firsts[from + i - 1])].holder = Frame.read_holder(raw)
    end
  end
  for from = 1, #ids, 4000 do
    local to = math.min(from + 3999, #ids)
    local active = redis.call('HMGET', queue.base .. 'active', unpack(ids, from, to))
    local fields = has_fields and redis.call('HMGET', queue.base .. 'vitals', unpack(ids, from, to)) or {}
    if #outcomes == 1 and outcomes[1][1] == 'r' and #ids <= 4000 then
      local alike, common = are_alike(queue, active, fields)
      if alike then
        finishing.alike, finishing.alike_groups = unpack_active(queue, active[1]), common and groups_behind(ids, active, common)
        return
      end
    end
    for i = 1, #active do
      finishing.active[ids[from + i - 1]] = active[i] and unpack_active(queue, active[i])
      if fields[i] then note_fields(queue, ids[from + i - 1], fields[i]) end
    end
  end
end

local ACTIVE = 49 -- '1'

-- The frame of an outcome, where its claim holds it; else false.
local function held_frame(queue, outcome, step)
  local entry = queue.finishing.frames[outcome[2]]
  local holder = entry.holder
  return holder and holder[3] == step.owner and Frame.is_claim(holder[5], outcome[5]) and entry
end

-- Whether this claim holds a job in its frame.
local function is_in_frame(queue, outcome, offset, step)
  local entry = held_frame(queue, outcome, step)
  if not entry then return false end
  if entry.bytes then return entry.bytes[offset + 1] == ACTIVE end
  local chars = entry.holder[2]
  return chars == '' or chars:byte(offset + 1) == ACTIVE
end

-- Lets jobs of a frame leave their take; false when this claim does not hold all of them.
local function leave_frame(queue, outcome, offset, count, step, char)
  local n, entry = outcome[3], held_frame(queue, outcome, step)
  if not entry then return false end
  local holder = entry.holder
  -- outcomes of another claim may have said otherwise
  entry.n = n
  if count == n and holder[2] == '' and not entry.bytes then
    holder[2] = string.rep(char, n)
  else
    local bytes = entry.bytes or { (holder[2] == '' and string.rep('1', n) or holder[2]):byte(1, -1) }
    entry.bytes = bytes
    for i = offset + 1, offset + count do
      if bytes[i] ~= ACTIVE then return false end
    end
    local byte = char:byte()
    for i = offset + 1, offset + count do bytes[i] = byte end
  end
  entry.left = true
  queue.active = queue.active - count
  return true
end

-- Reads those of these records that are not read yet: the outcomes take them for jobs of a frame.
local function load_records(queue, ids)
  local finishing, unread = queue.finishing, {}
  for _, id in ipairs(ids) do
    if finishing.active[id] == nil then unread[#unread + 1] = id end
  end
  if #unread == 0 then return end
  local active, fields = redis.call('HMGET', queue.base .. 'active', unpack(unread)), redis.call('HMGET', queue.base .. 'vitals', unpack(unread))
  for i, id in ipairs(unread) do
    finishing.active[id] = active[i] and unpack_active(queue, active[i])
    if fields[i] then note_fields(queue, id, fields[i]) end
  end
end

-- The active entry of a record, when this claim holds it; else nil, and why.
local function leave_active(queue, id, owner, claim)
  local finishing = queue.finishing
  if finishing.active[id] == nil then load_records(queue, { id }) end
  local active = finishing.active[id]
  if active and active[3] == owner and Frame.is_claim(active[5], claim) then
    finishing.active[id] = false
    finishing.active_del[#finishing.active_del + 1] = id
    queue.active = queue.active - 1
    Groups.note_left(queue, active[7], 1)
    return active
  end
  if active then return nil, LOCK_MISMATCH end
  return nil, redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 and LOCK_MISSING or JOB_MISSING
end

local function parent_at(queue, first, offset)
  local finishing = queue.finishing
  local header = Frame.header_in(finishing.frames[first].holder)
  if not header then return nil end
  local pa = Frame.parent_in(header, first, offset)
  if finishing.last_parent and finishing.last_parent[4] == pa[4] then return finishing.last_parent end
  finishing.last_parent = pa
  return pa
end

-- The body that an outcome brings of a job of a frame, for its record. Data of a long one are step.large[at]: they go apart, and Lua reads them this
-- once. Gives their bytes as well.
local function take_body(queue, id, body, step)
  if type(body) ~= 'table' then return body end
  return body[1], Large.put_data(queue, id, step.large[body[2]])
end

-- Takes one job out of its frame or out of the active records. Gives its active entry, or nil and why.
local function take_out(queue, outcome, step)
  local finishing = queue.finishing
  local first, _, offset, claim, id, body = unpack(outcome, 2, 7)
  if first > 0 and leave_frame(queue, outcome, offset, 1, step, '0') then
    local text, bytes = take_body(queue, id, body, step)
    WaitingList.append(finishing.jobs_set, id, text)
    local holder, pa = finishing.frames[first].holder, parent_at(queue, first, offset)
    if pa or bytes then
      finishing.fields[id] = { pa = pa, ld = bytes }
      WaitingList.append(finishing.fields_set, id, cmsgpack.pack(finishing.fields[id]))
    end
    return { holder[1], 1, step.owner, holder[4] }
  end
  return leave_active(queue, id, step.owner, claim)
end

-- A job without a record that is refused may lie in a frame: it was taken again, by somebody else, or another one has its id by now.
local function name_mismatches(queue)
  for _, refusal in ipairs(queue.finishing.rejected) do
    local first, place, code = refusal[1], refusal[2], refusal[3]
    local job = code == JOB_MISSING and Find.locate(queue, first > 0 and State.whole(first + place) or place)
    if job then refusal[3] = job.state == 'active' and LOCK_MISMATCH or LOCK_MISSING end
  end
end

return {
  LOCK_MISSING = LOCK_MISSING,
  value_at = value_at,
  load = load,
  is_in_frame = is_in_frame,
  leave_frame = leave_frame,
  load_records = load_records,
  own_fields = own_fields,
  leave_active = leave_active,
  parent_at = parent_at,
  take_body = take_body,
  take_out = take_out,
  name_mismatches = name_mismatches,
}
