-- complete: active -> completed. Jobs of a frame are kept as runs (rules/retention), the others as records.
local Events = require('events')
local Frame = require('frame')
local Groups = require('groups')
local Leave = require('leave')
local Outcomes = require('outcomes')
local Parents = require('parents')
local State = require('state')
local Stored = require('stored')
local Successor = require('successor')
local WaitingList = require('waiting_list')

-- Whether a parent that is refused is put aside: its children may end in the same step, behind it. It is looked at again once all others have ended
-- (step/finish).
local function is_early(queue, code)
  return code == Parents.ERROR_PENDING_CHILDREN and not queue.finishing.is_late
end

-- large_bytes: of a result that lies apart (returnvalue is nil then).
local function completed_fields(queue, id, active, returnvalue, step, large_bytes)
  local finishing = queue.finishing
  local origin = returnvalue == '' and (finishing.equal[id] or not finishing.fields[id] and '')
  local alike = finishing.plain_fields[active] or {}
  if origin and alike[origin] then return alike[origin] end
  local known = Leave.own_fields(queue, id)
  Stored.complete(known, active, returnvalue, step.now_ms)
  known.lr = large_bytes
  local packed = cmsgpack.pack(known)
  if origin then
    finishing.plain_fields[active] = alike
    alike[origin] = packed
  end
  return packed
end

local function complete_records(queue, ids, claims, keep, results, step)
  local finishing = queue.finishing
  local removed, finished_on = step.keeps[keep][1] == 0, State.whole(step.now_ms)
  local done, values = {}, {}
  local fields_set, completed_add = finishing.fields_set, finishing.completed_add
  local function tell()
    if #done > 0 then Events.emit(queue, #done, { 'X', 'completed', done, 'returnvalue', results and values or 'null', 'prev', 'active' }) end
    done, values = {}, {}
  end
  Leave.load_records(queue, ids)
  for i, id in ipairs(ids) do
    local fields, active, why = finishing.fields[id], nil, nil
    if fields and fields.ch then why = Parents.children_code(queue, id, step.now_ms) end
    if not why then active, why = Leave.leave_active(queue, id, step.owner, Leave.value_at(claims, i)) end
    if active then
      if fields and fields.di then
        tell()
        Successor.pass_key_on(queue, id, fields, step)
      end
      local n, value = #done + 1, results and results[i] or ''
      if fields and fields.pa then Parents.tell_parent(queue, fields.pa, id, 'processed', value == '' and 'null' or value) end
      done[n], values[n] = id, value == '' and 'null' or value
      if removed then
        finishing.dropped[#finishing.dropped + 1] = id
        finishing.removed = finishing.removed + 1
      else
        queue.completed = queue.completed + 1
        Outcomes.note_kept(queue, 'completed', keep, 1)
        n = #fields_set
        fields_set[n + 1], fields_set[n + 2] = id, completed_fields(queue, id, active, value, step)
        n = #completed_add
        completed_add[n + 1], completed_add[n + 2] = finished_on, id
      end
    elseif is_early(queue, why) then
      local result = results and results[i] or ''
      WaitingList.append(finishing.aside, { 'r', 0, 0, 0, Leave.value_at(claims, i), { id }, keep, result ~= '' and cmsgpack.pack({ result }) or '' })
    else
      finishing.rejected[#finishing.rejected + 1] = { 0, id, why, Leave.value_at(claims, i) }
    end
  end
  tell()
end

-- The ids and their results, each once.
local function without_twins(queue, ids, results, claim)
  local finishing = queue.finishing
  local seen, once, theirs = {}, {}, results and {}
  for i, id in ipairs(ids) do
    if seen[id] then
      finishing.rejected[#finishing.rejected + 1] = { 0, id, Leave.LOCK_MISSING, claim }
    else
      seen[id] = true
      once[#once + 1] = id
      if results then theirs[#once] = results[i] end
    end
  end
  return once, theirs
end

-- Completes records that were taken together and had no state fields. False when another claim holds them.
local function complete_alike(queue, outcome, step)
  local finishing = queue.finishing
  local claim, ids, keep, active = outcome[5], outcome[6], outcome[7], finishing.alike
  local results = outcome[8] ~= '' and cmsgpack.unpack(outcome[8])
  if active[3] ~= step.owner or type(claim) == 'table' or not Frame.is_claim(active[5], claim) then return false end
  if redis.call('HDEL', queue.base .. 'active', unpack(ids)) < #ids then
    ids, results = without_twins(queue, ids, results, claim)
  end
  local n = #ids
  queue.active = queue.active - n
  for i = 1, finishing.alike_groups and n or 0 do Groups.note_left(queue, finishing.alike_groups[ids[i]], 1) end
  if step.keeps[keep][1] == 0 then
    finishing.dropped, finishing.removed = ids, n
  else
    queue.completed = queue.completed + n
    Outcomes.note_kept(queue, 'completed', keep, n)
    local fields_set, completed_add, finished_on = finishing.fields_set, finishing.completed_add, State.whole(step.now_ms)
    local alike = completed_fields(queue, '', active, '', step)
    for i = 1, n do
      local id = ids[i]
      fields_set[2 * i - 1], fields_set[2 * i] = id, alike
      completed_add[2 * i - 1], completed_add[2 * i] = finished_on, id
    end
    if results then
      local head, rest = string.char(alike:byte(1) + 1), alike:sub(2) .. '\162rv'
      for i = 1, n do
        if results[i] ~= '' then fields_set[2 * i] = head .. rest .. cmsgpack.pack(results[i]) end
      end
    end
  end
  if results then
    for i = 1, n do
      if results[i] == '' then results[i] = 'null' end
    end
  end
  Events.emit(queue, n, { 'X', 'completed', ids, 'returnvalue', results or 'null', 'prev', 'active' })
  return true
end

-- Jobs of a frame of children completed, one behind the other.
local function tell_parents(queue, header, first, offset, count, results)
  local values = results ~= '' and cmsgpack.unpack(results)
  local parents, counts = header[4], header[5]
  local from, to = 0, offset + count
  for i = 1, #parents do
    local next_from = from + counts[i]
    if from >= to then break end
    if next_from > offset then
      local pa = { header[2], parents[i], header[3], first + from, counts[i] }
      if from >= offset and next_from <= to then
        Parents.tell_range(queue, pa, header[1], values and cmsgpack.pack({ unpack(values, from - offset + 1, next_from - offset) }) or '')
      else
        for at = math.max(from, offset), math.min(next_from, to) - 1 do
          local value = values and values[at - offset + 1] or ''
          Parents.tell_parent(queue, pa, Frame.id_in(header[1], first + at), 'processed', value == '' and 'null' or value)
        end
      end
    end
    from = next_from
  end
end

local function complete_jobs(queue, outcome, step)
  local finishing = queue.finishing
  local first, n, offset, _, count, keep, results = unpack(outcome, 2, 8)
  local removed = step.keeps[keep][1] == 0
  if not Leave.leave_frame(queue, outcome, offset, count, step, removed and '0' or 'k') then return false end
  local holder, ids = finishing.frames[first].holder, nil
  local header = Frame.header_in(holder)
  if header then
    ids = header[1]
    tell_parents(queue, header, first, offset, count, results)
  end
  if not removed then
    local number = State.whole(first + offset)
    finishing.runs_set[#finishing.runs_set + 1] = number
    finishing.runs_set[#finishing.runs_set + 1] = cmsgpack.pack({ count, first, n, holder[1], holder[4], results, ids })
    finishing.completed_add[#finishing.completed_add + 1] = step.now_ms
    finishing.completed_add[#finishing.completed_add + 1] = number
    queue.completed = queue.completed + count
    Outcomes.note_kept(queue, 'completed', keep, count)
  else
    finishing.removed = finishing.removed + count
  end
  Events.emit(queue, count, { 'C', first + offset, count, results, ids })
  return true
end

-- Results from one place to another, packed; '' when all are undefined.
local function some_results(results, from, to)
  for at = from, to do
    if (results[at] or '') ~= '' then return cmsgpack.pack({ unpack(results, from, to) }) end
  end
  return ''
end

-- Jobs of a frame that left it one by one since it was taken are records, or somebody else's. ids: of neighbours, the first at `offset`.
local function complete_left(queue, outcome, offset, ids, results, step)
  local rejected, aside, places = queue.finishing.rejected, queue.finishing.aside, {}
  local refused, waiting = #rejected, #aside
  complete_records(queue, ids, outcome[5], outcome[7], results, step)
  if #rejected == refused and #aside == waiting then return end
  -- named by their places, as they were asked for
  for at, id in ipairs(ids) do places[id] = offset + at - 1 end
  for at = refused + 1, #rejected do
    rejected[at] = { outcome[2], places[rejected[at][2]], rejected[at][3], outcome[5] }
  end
  for at = waiting + 1, #aside do aside[at].place = { outcome[2], places[aside[at][6][1]] } end
end

-- Some jobs of a frame left it; those that did and those that did not are completed a row at a time.
local function complete_scattered(queue, outcome, step)
  local first, n, offset, claim, count, keep = unpack(outcome, 2, 7)
  local results = outcome[8] ~= '' and cmsgpack.unpack(outcome[8]) or {}
  local from = 0
  while from < count do
    local is_there = Leave.is_in_frame(queue, outcome, offset + from, step)
    local to, ids = from, {}
    repeat
      to = to + 1
      ids[to - from] = Frame.id_in(outcome[9], first + offset + to - 1)
    until to == count or Leave.is_in_frame(queue, outcome, offset + to, step) ~= is_there
    if is_there then
      local row = { 'c', first, n, offset + from, claim, to - from, keep, some_results(results, from + 1, to) }
      complete_jobs(queue, row, step)
    else
      complete_left(queue, outcome, offset + from, ids, { unpack(results, from + 1, to) }, step)
    end
    from = to
  end
end

-- What is large is written as it came, once for the job and once for the event, and is in no other text: Lua copies each. A job that
-- ends with other options than its neighbours comes this way as well, and may have no result ('').
local function complete_large(queue, outcome, step)
  local finishing = queue.finishing
  local first, offset, id, keep, result = outcome[2], outcome[4], outcome[6], outcome[8], step.large[outcome[9]]
  local has_result = result ~= ''
  local told = has_result and result or 'null'
  -- a job that left its frame while it ran may have children by now
  if first > 0 and not Leave.is_in_frame(queue, outcome, offset, step) then Leave.load_records(queue, { id }) end
  local code = finishing.fields[id] and finishing.fields[id].ch and Parents.children_code(queue, id, step.now_ms)
  if code and is_early(queue, code) then return WaitingList.append(finishing.aside, outcome) end
  if code then return code end
  local active, why = Leave.take_out(queue, outcome, step)
  if not active then return why end
  local fields = finishing.fields[id] or {}
  if fields.di then Successor.pass_key_on(queue, id, fields, step) end
  if fields.pa then Parents.tell_parent(queue, fields.pa, id, 'processed', told) end
  Events.emit(queue, 1, { 'L', id })
  queue.large_values = queue.large_values or {}
  WaitingList.append(queue.large_values, 'v', told)
  if step.keeps[keep][1] == 0 then
    -- a job of a frame has no record yet, and needs none
    if finishing.jobs_set[#finishing.jobs_set - 1] == id then finishing.jobs_set[#finishing.jobs_set], finishing.jobs_set[#finishing.jobs_set - 1] = nil, nil end
    WaitingList.append(finishing.dropped, id)
    finishing.removed = finishing.removed + 1
    return nil
  end
  if has_result then redis.call('HSET', queue.base .. 'large', 'r' .. id, result) end
  queue.completed = queue.completed + 1
  Outcomes.note_kept(queue, 'completed', keep, 1)
  WaitingList.append(finishing.fields_set, id, completed_fields(queue, id, active, nil, step, has_result and #result or nil))
  WaitingList.append(finishing.completed_add, State.whole(step.now_ms), id)
  return nil
end

return {
  complete_records = complete_records,
  complete_alike = complete_alike,
  complete_jobs = complete_jobs,
  complete_scattered = complete_scattered,
  complete_large = complete_large,
}
