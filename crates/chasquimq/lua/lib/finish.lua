-- finish: active -> completed | failed | delayed | waiting | prioritized, for a batch of outcomes of one worker.
-- An outcome (an array) starts with its kind, where the job is: frame first and n (0 0 = a record), offset, and its claim (lib/frame): an
-- outcome of a claim that holds the job no more is refused.
--   {c, first, n, offset, claim, count, keep, results, ids}          completed jobs of a frame, one behind the other; ids: only of
--        children, what theirs begin with (lib/frame)
--   {r, 0, 0, 0, claims, ids, keep, results}                         completed records; claims: one for all, or one a job
--        results: '' (all undefined) or a MessagePack array of JSON texts ('' = undefined)
--   {l, first, n, offset, claim, id, body, keep, at}                 completed with a large result (lib/large): step.large_results[at]
--   {f, first, n, offsets, claims, ids, bodies, to, keep, due_ms, attempts_made, exhausted, reason, traces}   failed tries that end alike
--        to: failed | delayed | waiting | front; delay is due_ms - now_ms; bodies only for jobs of a frame; traces: one text, or one a job
--   {b, first, n, offset, claim, id, body, started}                  back to the front of the line, unfinished; started: it met a rate
--        limit, else its handler never ran
--   {m, first, n, offset, claim, id, body}                           let go: its handler said that it moved the job elsewhere
-- keep is an index into keeps: rules {count, age, limit} of lib/keep; count 0 removes at once. A fourth number is that of the minutes
-- for which finished jobs are counted (lib/metrics).
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local Frame = require('frame')
local Keep = require('keep')
local Line = require('line')
local Metrics = require('metrics')
local Parents = require('parents')
local Priority = require('priority')
local Records = require('records')
local State = require('state')
local Stored = require('stored')
local Visit = require('visit')

local ERROR_JOB_MISSING, ERROR_LOCK_MISSING, ERROR_LOCK_MISMATCH = -1, -2, -6

-- Of a queue: finishing, what a step's outcomes come to. Of what is equal for many jobs it keeps one: unpacked_entries, as records that were
-- taken together have equal active entries; parents_in, the parents in vitals that hold nothing else; last_parent, what waits for the job at
-- this place of a taken frame; plain_vitals, of records that were taken together, returned nothing, and had none before or are siblings at
-- their first try.
local function start(queue)
  queue.finishing = State.with_lists({ removed = 0, failed_removed = 0, alike = false, last_parent = false, met_limit = false })
  queue.call.by_turn = true
end

-- Vitals of a child that is at its first try hold nothing but its parent; those of siblings are equal.
local FRESH_CHILD = '\129\162pa'

-- A job that was let go and not moved belongs to nobody: once the lease of those let go with it has run out, a scan brings it back as
-- stalled.
local NOBODY = '-'

-- Ids whose fields are read without asking first whether the hash is there.
local FEW, NONE = 8, {}

local function claim_at(claims, i)
  return type(claims) == 'table' and claims[i] or claims
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

-- Whether records were taken together and had no vitals.
local function are_alike(active, vitals)
  local first = active[1]
  if not first then return false end
  for i = 1, #active do
    if active[i] ~= first or vitals[i] then return false end
  end
  return true
end

-- Reads what the outcomes are about in three calls, however many there are.
local function load_finish(queue, outcomes)
  local finishing = queue.finishing
  local firsts, ids = {}, {}
  for _, outcome in ipairs(outcomes) do
    local kind, first = outcome[1], outcome[2]
    if first > 0 then
      if not finishing.takes[first] then
        finishing.takes[first] = { n = outcome[3] }
        firsts[#firsts + 1] = State.whole(first)
      end
    elseif kind == 'r' or kind == 'f' then
      for _, id in ipairs(outcome[6]) do ids[#ids + 1] = id end
    else
      ids[#ids + 1] = outcome[6]
    end
  end
  -- of few, asking whether there are any costs as much as reading them
  local has_vitals = #ids > 0 and (#ids <= FEW or redis.call('EXISTS', queue.base .. 'vitals') == 1)
  for from = 1, #firsts, 4000 do
    local to = math.min(from + 3999, #firsts)
    for i, raw in ipairs(redis.call('HMGET', queue.base .. 'takes', unpack(firsts, from, to))) do
      finishing.takes[tonumber(firsts[from + i - 1])].take = Frame.read_take(raw)
    end
  end
  for from = 1, #ids, 4000 do
    local to = math.min(from + 3999, #ids)
    local active = redis.call('HMGET', queue.base .. 'active', unpack(ids, from, to))
    local vitals = has_vitals and redis.call('HMGET', queue.base .. 'vitals', unpack(ids, from, to)) or {}
    if #outcomes == 1 and outcomes[1][1] == 'r' and #ids <= 4000 and are_alike(active, vitals) then
      finishing.alike = unpack_active(queue, active[1])
      return
    end
    for i = 1, #active do
      finishing.active[ids[from + i - 1]] = active[i] and unpack_active(queue, active[i])
      local id, raw = ids[from + i - 1], vitals[i]
      if raw and raw:sub(1, 4) == FRESH_CHILD then
        finishing.parents_in[raw] = finishing.parents_in[raw] or Stored.vitals(raw).pa
        finishing.vitals[id], finishing.fresh[id] = { pa = finishing.parents_in[raw] }, raw
      else
        finishing.vitals[id] = raw and Stored.vitals(raw)
      end
    end
  end
end

local ACTIVE = 49 -- '1'

-- Lets jobs of a frame leave their take; false when this claim does not hold all of them.
local function leave_take(queue, outcome, offset, count, step, char)
  local n, entry = outcome[3], queue.finishing.takes[outcome[2]]
  local take = entry.take
  if not take or take[3] ~= step.owner or not Frame.is_claim(take[5], outcome[5]) then return false end
  -- outcomes of another claim may have said otherwise
  entry.n = n
  if count == n and take[2] == '' and not entry.bytes then
    take[2] = string.rep(char, n)
  else
    local bytes = entry.bytes or { (take[2] == '' and string.rep('1', n) or take[2]):byte(1, -1) }
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

-- Reads a record that the outcomes take for a job of a frame.
local function load_record(queue, id)
  local finishing = queue.finishing
  local active, vitals = redis.call('HGET', queue.base .. 'active', id), redis.call('HGET', queue.base .. 'vitals', id)
  finishing.active[id], finishing.vitals[id] = active and unpack_active(queue, active), vitals and Stored.vitals(vitals)
end

-- The active entry of a record, when this claim holds it; else nil, and why.
local function leave_active(queue, id, owner, claim)
  local finishing = queue.finishing
  if finishing.active[id] == nil then load_record(queue, id) end
  local active = finishing.active[id]
  if active and active[3] == owner and Frame.is_claim(active[5], claim) then
    finishing.active[id] = false
    finishing.active_del[#finishing.active_del + 1] = id
    queue.active = queue.active - 1
    return active
  end
  if active then return nil, ERROR_LOCK_MISMATCH end
  return nil, redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 and ERROR_LOCK_MISSING or ERROR_JOB_MISSING
end

-- Jobs ended, one behind the other, and are kept by this rule: how many of each rule, and how many in all until the last of them.
local function note_kept(queue, set, keep, count)
  local kept = queue.finishing[set]
  local of_rule = kept[keep] or { 0, 0 }
  kept.all = (kept.all or 0) + count
  of_rule[1], of_rule[2] = of_rule[1] + count, kept.all
  kept[keep] = of_rule
end

-- large_bytes: of a result that lies apart (returnvalue is nil then).
local function completed_vitals(queue, id, active, returnvalue, step, large_bytes)
  local finishing = queue.finishing
  local vitals = finishing.vitals[id]
  local origin, alike = returnvalue == '' and (finishing.fresh[id] or not vitals and ''), finishing.plain_vitals[active] or {}
  if origin and alike[origin] then return alike[origin] end
  local known = vitals or {}
  known.am, known.as, known.po, known.fo = (known.am or 0) + 1, active[2], active[1], step.now_ms
  known.rv = returnvalue ~= '' and returnvalue or nil
  known.lr = large_bytes
  if active[4] ~= '' then known.pb = active[4] end
  known.d = nil
  local packed = cmsgpack.pack(known)
  if origin then
    finishing.plain_vitals[active] = alike
    alike[origin] = packed
  end
  return packed
end

-- What an owner of a deduplication id kept while it was active becomes a job, and the owner. A job of its id may exist by now.
local function add_next(queue, item, body, step)
  local finishing = queue.finishing
  local id, name, due_ms, front, dedup = item[2], item[3], item[4], item[5], item[6]
  queue.id = queue.id + 1
  if finishing.added[id] or redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 or (queue.flows == 1 and Find.locate(queue, id)) then
    Events.emit_job(queue, 'duplicated', id)
    return false
  end
  local fields = Stored.body(body)
  local delay_ms = math.max(due_ms - fields[1], 0)
  fields[1] = step.now_ms
  if #fields > 4 then Priority.expect_priorities(queue) end
  finishing.added[id] = true
  Line.append(finishing.jobs_set, id, cmsgpack.pack(fields))
  Line.append(finishing.vitals_set, id, cmsgpack.pack({ di = dedup[1] }))
  if due_ms > 0 then
    due_ms = step.now_ms + delay_ms
    Line.append(finishing.delayed, id)
    Line.append(finishing.dues, due_ms)
    Events.emit(queue, 2, { 'B', { id }, 1, name, 'delayed', { due_ms } })
  else
    Line.append(front == 1 and finishing.front or finishing.waiting, id)
    Events.emit(queue, 2, { 'B', { id }, 1, name, 'waiting' })
  end
  redis.call('SET', queue.base .. 'de:' .. dedup[1], id)
  return true
end

-- A deduplicated job has finished for good. Its key goes, unless it has a ttl, or passes to the job that was kept.
local function finish_key(queue, id, vitals, step)
  local kept = vitals.nx
  vitals.nx = nil
  if kept and add_next(queue, kept[1], kept[2], step) then return end
  local key = queue.base .. 'de:' .. vitals.di
  if redis.call('GET', key) == id and redis.call('PTTL', key) < 0 then redis.call('DEL', key) end
end

local function complete_records(queue, ids, claims, keep, results, step)
  local finishing = queue.finishing
  local removed, finished_on = step.keeps[keep][1] == 0, State.whole(step.now_ms)
  local done, values = {}, {}
  local vitals_set, completed_add = finishing.vitals_set, finishing.completed_add
  local function tell()
    if #done > 0 then Events.emit(queue, #done, { 'X', 'completed', done, 'returnvalue', results and values or 'null', 'prev', 'active' }) end
    done, values = {}, {}
  end
  for i, id in ipairs(ids) do
    if finishing.active[id] == nil then load_record(queue, id) end
    local vitals, active, why = finishing.vitals[id], nil, nil
    if vitals and vitals.ch then why = Parents.children_code(queue, id, step.now_ms) end
    if not why then active, why = leave_active(queue, id, step.owner, claim_at(claims, i)) end
    if active then
      if vitals and vitals.di then
        tell()
        finish_key(queue, id, vitals, step)
      end
      local n, value = #done + 1, results and results[i] or ''
      if vitals and vitals.pa then Parents.tell_parent(queue, vitals.pa, id, 'processed', value == '' and 'null' or value) end
      done[n], values[n] = id, value == '' and 'null' or value
      if removed then
        finishing.dropped[#finishing.dropped + 1] = id
        finishing.removed = finishing.removed + 1
      else
        queue.completed = queue.completed + 1
        note_kept(queue, 'completed', keep, 1)
        n = #vitals_set
        vitals_set[n + 1], vitals_set[n + 2] = id, completed_vitals(queue, id, active, value, step)
        n = #completed_add
        completed_add[n + 1], completed_add[n + 2] = finished_on, id
      end
    else
      finishing.rejected[#finishing.rejected + 1] = { 0, id, why, claim_at(claims, i) }
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
      finishing.rejected[#finishing.rejected + 1] = { 0, id, ERROR_LOCK_MISSING, claim }
    else
      seen[id] = true
      once[#once + 1] = id
      if results then theirs[#once] = results[i] end
    end
  end
  return once, theirs
end

-- Completes records that were taken together and had no vitals. False when another claim holds them.
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
  if step.keeps[keep][1] == 0 then
    finishing.dropped, finishing.removed = ids, n
  else
    queue.completed = queue.completed + n
    note_kept(queue, 'completed', keep, n)
    local vitals_set, completed_add, finished_on = finishing.vitals_set, finishing.completed_add, State.whole(step.now_ms)
    local alike = completed_vitals(queue, '', active, '', step)
    for i = 1, n do
      local id = ids[i]
      vitals_set[2 * i - 1], vitals_set[2 * i] = id, alike
      completed_add[2 * i - 1], completed_add[2 * i] = finished_on, id
    end
    if results then
      local head, fields = string.char(alike:byte(1) + 1), alike:sub(2) .. '\162rv'
      for i = 1, n do
        if results[i] ~= '' then vitals_set[2 * i] = head .. fields .. cmsgpack.pack(results[i]) end
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
local function tell_parents(queue, brood, first, offset, count, results)
  local values = results ~= '' and cmsgpack.unpack(results)
  local parents, counts = brood[4], brood[5]
  local from, to = 0, offset + count
  for i = 1, #parents do
    local next_from = from + counts[i]
    if from >= to then break end
    if next_from > offset then
      local pa = { brood[2], parents[i], brood[3], first + from, counts[i] }
      if from >= offset and next_from <= to then
        Parents.tell_span(queue, pa, brood[1], values and cmsgpack.pack({ unpack(values, from - offset + 1, next_from - offset) }) or '')
      else
        for at = math.max(from, offset), math.min(next_from, to) - 1 do
          local value = values and values[at - offset + 1] or ''
          Parents.tell_parent(queue, pa, Frame.id_in(brood[1], first + at), 'processed', value == '' and 'null' or value)
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
  if not leave_take(queue, outcome, offset, count, step, removed and '0' or 'k') then return false end
  local take, ids = finishing.takes[first].take, nil
  local brood = Frame.brood_in(take)
  if brood then
    ids = brood[1]
    tell_parents(queue, brood, first, offset, count, results)
  end
  if not removed then
    local number = State.whole(first + offset)
    finishing.runs_set[#finishing.runs_set + 1] = number
    finishing.runs_set[#finishing.runs_set + 1] = cmsgpack.pack({ count, first, n, take[1], take[4], results, ids })
    finishing.completed_add[#finishing.completed_add + 1] = step.now_ms
    finishing.completed_add[#finishing.completed_add + 1] = number
    queue.completed = queue.completed + count
    note_kept(queue, 'completed', keep, count)
  else
    finishing.removed = finishing.removed + count
  end
  Events.emit(queue, count, { 'C', first + offset, count, results, ids })
  return true
end

local function parent_at(queue, first, offset)
  local finishing = queue.finishing
  local brood = Frame.brood_in(finishing.takes[first].take)
  if not brood then return nil end
  local pa = Frame.parent_in(brood, first, offset)
  if finishing.last_parent and finishing.last_parent[4] == pa[4] then return finishing.last_parent end
  finishing.last_parent = pa
  return pa
end

-- What a failed try leaves of a job in its vitals.
local function failed_vitals(vitals, active, outcome, step)
  Stored.start(vitals, active)
  vitals.am = outcome[11]
  vitals.fr = outcome[13] ~= '' and outcome[13] or nil
  -- an error without a message has stack traces, too
  if not vitals.fr then vitals.tr = '' end
  vitals.d = nil
  -- what the job is to fail for stays until it has failed for good
  if outcome[8] == 'failed' then vitals.fo, vitals.df = step.now_ms, nil end
  if outcome[8] == 'delayed' then vitals.d = math.max(outcome[10] - step.now_ms, 0) end
  return cmsgpack.pack(vitals)
end

-- A job has failed for good.
local function settle_failed(queue, id, outcome, step)
  local finishing = queue.finishing
  local keep, reason = outcome[9], outcome[13]
  local n = #finishing.failed_add
  finishing.failed_add[n + 1], finishing.failed_add[n + 2] = step.now_ms, id
  if step.keeps[keep][1] == 0 then
    finishing.dropped[#finishing.dropped + 1] = id
    finishing.failed_removed = finishing.failed_removed + 1
  else
    note_kept(queue, 'failed', keep, 1)
  end
  Events.emit_job(queue, 'failed', id, 'active', 'failedReason', reason)
  if outcome[12] == 1 then Events.emit_job(queue, 'retries-exhausted', id, nil, 'attemptsMade', State.whole(outcome[11])) end
end

-- Jobs are tried again.
local function place_failed(queue, ids, to, due_ms)
  local finishing = queue.finishing
  local list = to == 'delayed' and finishing.delayed or to == 'front' and finishing.front or finishing.waiting
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
  local again, fresh, fresh_parent = {}, nil, nil
  for i, id in ipairs(ids) do
    local claim, active, why, packed = claim_at(claims, i), nil, nil, nil
    if first > 0 and leave_take(queue, outcome, offsets[i], 1, step, '0') then
      local n, take = #finishing.jobs_set, finishing.takes[first].take
      finishing.jobs_set[n + 1], finishing.jobs_set[n + 2] = id, bodies[i]
      local pa = parent_at(queue, first, offsets[i])
      if pa and to == 'failed' then Parents.tell_failure(queue, pa, id, reason, step.keeps[keep][1] == 0) end
      -- jobs of one frame, and parent, that fail alike, for the first time, have equal vitals
      if not fresh or fresh_parent ~= pa then
        fresh, fresh_parent = failed_vitals({ pa = pa }, { take[1], 1, step.owner, take[4] }, outcome, step), pa
      end
      packed = fresh
    else
      active, why = leave_active(queue, id, step.owner, claim)
      local vitals = finishing.vitals[id] or {}
      if active and to == 'failed' then
        if vitals.di then finish_key(queue, id, vitals, step) end
        if vitals.pa then Parents.tell_failure(queue, vitals.pa, id, reason, step.keeps[keep][1] == 0) end
      end
      packed = active and failed_vitals(vitals, active, outcome, step)
    end
    if packed then
      local n = #finishing.vitals_set
      finishing.vitals_set[n + 1], finishing.vitals_set[n + 2] = id, packed
      local trace = type(traces) == 'table' and traces[i] or traces
      if trace ~= '' then
        n = #finishing.traces_set
        finishing.traces_set[n + 1], finishing.traces_set[n + 2] = id, trace
      end
      if to == 'failed' then settle_failed(queue, id, outcome, step) else again[#again + 1] = id end
    else
      finishing.rejected[#finishing.rejected + 1] = first > 0 and { first, offsets[i], why, claim } or { 0, id, why, claim }
    end
  end
  if #again > 0 then place_failed(queue, again, to, outcome[10]) end
end

-- Jobs of a frame that left it one by one since it was taken are records, or somebody else's.
local function complete_scattered(queue, outcome, step)
  local finishing = queue.finishing
  local first, n, offset, claim, count, keep = unpack(outcome, 2, 7)
  local results, ids = outcome[8] ~= '' and cmsgpack.unpack(outcome[8]) or {}, outcome[9]
  for i = 0, count - 1 do
    local value = results[i + 1] or ''
    local single = { 'c', first, n, offset + i, claim, 1, keep, value ~= '' and cmsgpack.pack({ value }) or '' }
    if not complete_jobs(queue, single, step) then
      local refused = #finishing.rejected
      complete_records(queue, { Frame.id_in(ids, first + offset + i) }, claim, keep, { value }, step)
      -- named by its place, as it was asked for
      if #finishing.rejected > refused then finishing.rejected[#finishing.rejected] = { first, offset + i, finishing.rejected[#finishing.rejected][3], claim } end
    end
  end
end

-- Takes one job out of its frame or out of the active records. Gives its active entry, or nil and why.
local function take_out(queue, outcome, step)
  local finishing = queue.finishing
  local first, _, offset, claim, id, body = unpack(outcome, 2, 7)
  if first > 0 and leave_take(queue, outcome, offset, 1, step, '0') then
    finishing.jobs_set[#finishing.jobs_set + 1] = id
    finishing.jobs_set[#finishing.jobs_set + 1] = body
    local take, pa = finishing.takes[first].take, parent_at(queue, first, offset)
    if pa then
      finishing.vitals[id] = { pa = pa }
      Line.append(finishing.vitals_set, id, cmsgpack.pack(finishing.vitals[id]))
    end
    return { take[1], 1, step.owner, take[4] }
  end
  return leave_active(queue, id, step.owner, claim)
end

-- What is large is written as it came, once for the job and once for the event, and is in no other text: Lua copies each. A job that
-- ends with other options than its neighbours comes this way as well, and may have no result ('').
local function complete_large(queue, outcome, step)
  local finishing = queue.finishing
  local id, keep, result = outcome[6], outcome[8], step.large_results[outcome[9]]
  local has_result = result ~= ''
  local told = has_result and result or 'null'
  local code = finishing.vitals[id] and finishing.vitals[id].ch and Parents.children_code(queue, id, step.now_ms)
  if code then return code end
  local active, why = take_out(queue, outcome, step)
  if not active then return why end
  local vitals = finishing.vitals[id] or {}
  if vitals.di then finish_key(queue, id, vitals, step) end
  if vitals.pa then Parents.tell_parent(queue, vitals.pa, id, 'processed', told) end
  Events.emit(queue, 1, { 'L', id })
  queue.large_values = queue.large_values or {}
  Line.append(queue.large_values, 'v', told)
  if step.keeps[keep][1] == 0 then
    -- a job of a frame has no record yet, and needs none
    if finishing.jobs_set[#finishing.jobs_set - 1] == id then finishing.jobs_set[#finishing.jobs_set], finishing.jobs_set[#finishing.jobs_set - 1] = nil, nil end
    Line.append(finishing.dropped, id)
    finishing.removed = finishing.removed + 1
    return nil
  end
  if has_result then redis.call('HSET', queue.base .. 'large', 'r' .. id, result) end
  queue.completed = queue.completed + 1
  note_kept(queue, 'completed', keep, 1)
  Line.append(finishing.vitals_set, id, completed_vitals(queue, id, active, nil, step, has_result and #result or nil))
  Line.append(finishing.completed_add, State.whole(step.now_ms), id)
  return nil
end

local function give_back(queue, outcome, step)
  local finishing = queue.finishing
  local id, started = outcome[6], outcome[8]
  local active, why = take_out(queue, outcome, step)
  if not active then return why end
  local vitals = finishing.vitals[id] or {}
  if started == 1 then
    Stored.start(vitals, active)
    finishing.met_limit = true
  else
    vitals.as = active[2] - 1
  end
  finishing.vitals_set[#finishing.vitals_set + 1] = id
  finishing.vitals_set[#finishing.vitals_set + 1] = cmsgpack.pack(vitals)
  table.insert(finishing.front, id)
  finishing.places[id] = started == 1 and 'front' or 'back'
  Events.emit_job(queue, 'waiting', id, 'active')
  return nil
end

local function let_go(queue, outcome, step)
  local finishing = queue.finishing
  local id = outcome[6]
  local active = take_out(queue, outcome, step)
  if not active then return end
  if finishing.active_del[#finishing.active_del] == id then finishing.active_del[#finishing.active_del] = nil end
  queue.active = queue.active + 1
  -- a lease of this step alone: one that later steps renewed would keep the job from coming back
  local nobody = NOBODY .. step.owner .. '.' .. step.claim
  finishing.active_set[#finishing.active_set + 1] = id
  finishing.active_set[#finishing.active_set + 1] = cmsgpack.pack({ active[1], active[2], nobody, active[4], Frame.ANY_CLAIM })
  redis.call('SET', queue.base .. 'lease:' .. nobody, 1, 'PX', step.lease_ms)
end

-- A job without a record that is refused may lie in a frame: it was taken again, by somebody else, or another one has its id by now.
local function name_mismatches(queue)
  for _, refusal in ipairs(queue.finishing.rejected) do
    local first, place, code = refusal[1], refusal[2], refusal[3]
    local job = code == ERROR_JOB_MISSING and Find.locate(queue, first > 0 and State.whole(first + place) or place)
    if job then refusal[3] = job.state == 'active' and ERROR_LOCK_MISMATCH or ERROR_LOCK_MISSING end
  end
end

-- What is written, in this order: command, key, list.
local WRITES = {
  { 'HDEL', 'active', 'active_del' },
  { 'HSET', 'active', 'active_set' },
  { 'HSET', 'jobs', 'jobs_set' },
  { 'HSET', 'vitals', 'vitals_set' },
  { 'HSET', 'traces', 'traces_set' },
  { 'HSET', 'runs', 'runs_set' },
  { 'ZADD', 'completed', 'completed_add' },
  { 'ZADD', 'failed', 'failed_add' },
}

-- Whether none of these records has vitals, by what was read, and is to be written.
local function are_bare(finishing, ids)
  if rawget(finishing, 'vitals_set') then return false end
  local vitals = rawget(finishing, 'vitals')
  for i = 1, vitals and #ids or 0 do
    if vitals[ids[i]] then return false end
  end
  return true
end

local FINISHED = { 'completed', 'failed' }

-- Whether one of the rules by which these jobs are kept has a count.
local function has_count(step, kept)
  for keep in pairs(kept or NONE) do
    if keep ~= 'all' and step.keeps[keep][1] > 0 then return true end
  end
  return false
end

local function write_finish(queue, step)
  local finishing = queue.finishing
  for first, entry in pairs(finishing.takes) do
    if entry.left then
      if entry.bytes then entry.take[2] = string.char(unpack(entry.bytes)) end
      Frame.store_take(queue, first, entry.n, entry.take)
    end
  end
  for _, set in ipairs(FINISHED) do
    local list = rawget(finishing, set .. '_add')
    if list then Keep.rank_ends(queue, set, list, step.now_ms, has_count(step, rawget(finishing, set))) end
  end
  for _, write in ipairs(WRITES) do
    local list = rawget(finishing, write[3])
    if list then Line.call_in_chunks(write[1], queue.base .. write[2], list) end
  end
  if rawget(finishing, 'delayed') then Delayed.delay_jobs(queue, finishing.delayed, finishing.dues) end
  local dropped = rawget(finishing, 'dropped')
  if dropped and #dropped > 0 then
    for from = 1, rawget(finishing, 'failed_add') and #dropped or 0, 1000 do
      redis.call('ZREM', queue.base .. 'failed', unpack(dropped, from, math.min(from + 999, #dropped)))
    end
    Records.drop_records(queue, dropped, true, true, are_bare(finishing, dropped))
  end
  if rawget(finishing, 'waiting') then Priority.enter_line(queue, finishing.waiting) end
  if rawget(finishing, 'front') then Priority.enter_front(queue, finishing.front, finishing.places) end
end

-- Applies the outcomes. step: owner, lease_ms, now_ms, keeps. Gives {frame_first, offset, code, claim} or {0, id, code, claim} of
-- each one refused.
local function finish(queue, outcomes, step)
  start(queue)
  local finishing = queue.finishing
  Events.close_group(queue)
  local told = #queue.event_groups
  load_finish(queue, outcomes)
  for _, outcome in ipairs(outcomes) do
    local kind, why = outcome[1], nil
    if kind == 'c' then
      if not complete_jobs(queue, outcome, step) then complete_scattered(queue, outcome, step) end
    elseif kind == 'r' then
      if not (finishing.alike and complete_alike(queue, outcome, step)) then
        complete_records(queue, outcome[6], outcome[5], outcome[7], outcome[8] ~= '' and cmsgpack.unpack(outcome[8]), step)
      end
    elseif kind == 'f' then
      fail_jobs(queue, outcome, step)
    elseif kind == 'm' then
      let_go(queue, outcome, step)
    elseif kind == 'l' then
      why = complete_large(queue, outcome, step)
    else
      why = give_back(queue, outcome, step)
    end
    if why then
      if outcome[2] > 0 then
        table.insert(finishing.rejected, { outcome[2], outcome[4], why, outcome[5] })
      else
        table.insert(finishing.rejected, { 0, outcome[6], why, outcome[5] })
      end
    end
  end
  if #finishing.rejected > 0 then name_mismatches(queue) end
  write_finish(queue, step)
  local points = step.keeps[1] and step.keeps[1][4]
  for _, set in ipairs(FINISHED) do
    local kept = rawget(finishing, set) or NONE
    for keep, of_rule in pairs(kept) do
      if keep ~= 'all' then Keep.apply_keep(queue, set, step.keeps[keep], step.now_ms, of_rule[1], kept.all - of_rule[2]) end
    end
    local ended = (kept.all or 0) + (set == 'completed' and finishing.removed or finishing.failed_removed)
    if points and ended > 0 then Metrics.count_minutes(queue, set, ended, step.now_ms, points) end
  end
  if queue.flows == 1 then
    Events.close_group(queue)
    local ended = #queue.event_groups
    Parents.cut_removed(queue)
    Parents.settle_parents(queue, step.now_ms)
    Events.close_group(queue)
    -- parents that wait in this queue start before their last child is told to have ended
    for i = ended + 1, #queue.event_groups do table.insert(queue.event_groups, told + i - ended, table.remove(queue.event_groups, i)) end
    Visit.flush_visited(queue, step.now_ms)
  end
  return finishing.rejected
end

return {
  finish = finish,
}
