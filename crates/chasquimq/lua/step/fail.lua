-- fail: active -> failed, or delayed | waiting to be tried again. Which of them the engine has decided (src/retry.rs).
local Events = require('events')
local GroupOrder = require('group_order')
local Leave = require('leave')
local Outcomes = require('outcomes')
local Parents = require('parents')
local State = require('state')
local Stored = require('stored')
local Successor = require('successor')

-- What a failed try leaves of a job in its state fields.
local function failed_fields(fields, active, outcome, step)
  Stored.start(fields, active)
  fields.am = outcome[11]
  -- of what has no message at all, until the job has failed for good, that of the try before stays
  if not outcome[15] or outcome[8] == 'failed' then fields.fr = outcome[13] ~= '' and outcome[13] or nil end
  -- an error without a message has stack traces, too
  if not fields.fr then fields.tr = '' end
  fields.d = nil
  -- what the job is to fail for stays until it has failed for good
  if outcome[8] == 'failed' then fields.fo, fields.df = step.now_ms, nil end
  if outcome[8] == 'delayed' then fields.d = math.max(outcome[10] - step.now_ms, 0) end
  fields.ws = outcome[16] and outcome[8] ~= 'failed' and step.now_ms + (fields.d or 0) or nil
  return cmsgpack.pack(fields)
end

-- The same, packed, of a record. Those of records that were taken together are equal where they were before. alike: what they became in this
-- outcome, by what they were.
local function fail_record(queue, id, active, outcome, step, alike)
  local finishing = queue.finishing
  local raw = finishing.equal[id] or (not finishing.fields[id] and '')
  local known = raw and alike[raw]
  if known and known.active == active then return known.packed end
  local packed = failed_fields(Leave.own_fields(queue, id), active, outcome, step)
  if raw then alike[raw] = { active = active, packed = packed } end
  return packed
end

-- A job has failed for good. from: the state that it was in.
local function settle_failed(queue, id, keep, reason, from, step)
  local finishing = queue.finishing
  local n = #finishing.failed_add
  finishing.failed_add[n + 1], finishing.failed_add[n + 2] = step.now_ms, id
  if step.keeps[keep][1] == 0 then
    finishing.dropped[#finishing.dropped + 1] = id
    finishing.failed_removed = finishing.failed_removed + 1
  else
    Outcomes.note_kept(queue, 'failed', keep, 1)
  end
  Events.emit_job(queue, 'failed', id, from, 'failedReason', reason)
end

-- Jobs are tried again.
local function place_failed(queue, ids, to, due_ms)
  local finishing = queue.finishing
  local list = to == 'delayed' and finishing.delayed or to == 'front' and finishing.latest or finishing.waiting
  for _, id in ipairs(ids) do
    list[#list + 1] = id
    if to == 'delayed' then finishing.dues[#list] = due_ms end
  end
  if to == 'delayed' then
    Events.emit(queue, #ids, { 'X', 'delayed', ids, 'delay', State.whole(due_ms) })
  else
    Events.emit(queue, #ids, { 'X', 'waiting', ids, 'prev', 'active' })
  end
end

local function fail_jobs(queue, outcome, step)
  local finishing = queue.finishing
  local first, _, offsets, claims, ids, bodies, to = unpack(outcome, 2, 8)
  local keep, reason, traces = outcome[9], outcome[13], outcome[14]
  local again, alike, fresh, fresh_parent, fresh_bytes = {}, {}, nil, nil, nil
  for i, id in ipairs(ids) do
    local claim, active, why, packed = Leave.value_at(claims, i), nil, nil, nil
    if first > 0 and Leave.leave_frame(queue, outcome, offsets[i], 1, step, '0') then
      local n, holder = #finishing.jobs_set, finishing.frames[first].holder
      local body, bytes = Leave.take_body(queue, id, bodies[i], step)
      finishing.jobs_set[n + 1], finishing.jobs_set[n + 2] = id, body
      local pa = Leave.parent_at(queue, first, offsets[i])
      if pa and to == 'failed' then Parents.tell_failure(queue, pa, id, reason, step.keeps[keep][1] == 0) end
      -- jobs of one frame, and parent, that fail alike, for the first time, have equal state fields
      if not fresh or fresh_parent ~= pa or fresh_bytes ~= bytes then
        fresh, fresh_parent, fresh_bytes = failed_fields({ pa = pa, ld = bytes }, { holder[1], 1, step.owner, holder[4] }, outcome, step), pa, bytes
      end
      packed = fresh
    else
      active, why = Leave.leave_active(queue, id, step.owner, claim)
      if active and to == 'delayed' then GroupOrder.hold(queue, active[7], id) end
      local fields = finishing.fields[id] or {}
      if active and to == 'failed' then
        if fields.di then Successor.pass_key_on(queue, id, fields, step) end
        if fields.pa then Parents.tell_failure(queue, fields.pa, id, reason, step.keeps[keep][1] == 0) end
      end
      packed = active and fail_record(queue, id, active, outcome, step, alike)
    end
    if packed then
      local n = #finishing.fields_set
      finishing.fields_set[n + 1], finishing.fields_set[n + 2] = id, packed
      local trace = Leave.value_at(traces, i)
      if trace ~= '' then
        n = #finishing.traces_set
        finishing.traces_set[n + 1], finishing.traces_set[n + 2] = id, trace
      end
      if to == 'failed' then
        settle_failed(queue, id, keep, reason, 'active', step)
        if outcome[12] == 1 then Events.emit_job(queue, 'retries-exhausted', id, nil, 'attemptsMade', State.whole(outcome[11])) end
      else
        again[#again + 1] = id
      end
    else
      finishing.rejected[#finishing.rejected + 1] = first > 0 and { first, offsets[i], why, claim } or { 0, id, why, claim }
    end
  end
  if #again > 0 then place_failed(queue, again, to, outcome[10]) end
end

return {
  failed_fields = failed_fields,
  settle_failed = settle_failed,
  fail_jobs = fail_jobs,
}
