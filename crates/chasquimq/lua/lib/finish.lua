-- finish: active -> completed | failed | delayed | waiting | prioritized, for a batch of outcomes of one worker.
-- An outcome (an array) starts with its kind, where the job is: frame first and n (0 0 = a record), offset, and its claim (lib/frame): an
-- outcome of a claim that holds the job no more is refused.
--   {c, first, n, offset, claim, count, keep, results, ids}          completed jobs of a frame, one behind the other; ids: only of
--        children, what theirs begin with (lib/frame)
--   {r, 0, 0, 0, claims, ids, keep, results}                         completed records; claims: one for all, or one a job
--        results: '' (all undefined) or a MessagePack array of JSON texts ('' = undefined)
--   {l, first, n, offset, claim, id, body, keep, at}                 completed with a large result (lib/large): W.large_results[at]
--   {f, first, n, offsets, claims, ids, bodies, to, keep, due_ms, attempts_made, exhausted, reason, traces}   failed tries that end alike
--        to: failed | delayed | waiting | front; delay is due_ms - now_ms; bodies only for jobs of a frame; traces: one text, or one a job
--   {b, first, n, offset, claim, id, body, started}                  back to the front of the line, unfinished; started: it met a rate
--        limit, else its handler never ran
--   {m, first, n, offset, claim, id, body}                           let go: its handler said that it moved the job elsewhere
-- keep is an index into keeps: rules {count, age, limit} of lib/keep; count 0 removes at once. A fourth number is that of the minutes
-- for which finished jobs are counted (lib/metrics).
local ERROR_JOB_MISSING, ERROR_LOCK_MISSING, ERROR_LOCK_MISMATCH = -1, -2, -6

local F = { stored = stored, rejected = {}, takes = {}, active = {}, vitals = {}, fresh = {}, completed = {}, failed = {}, removed = 0,
  jobs_set = {}, vitals_set = {}, runs_set = {}, active_del = {}, active_set = {}, dropped = {}, completed_add = {}, failed_add = {},
  delayed = {}, dues = {}, waiting = {}, front = {}, places = {}, traces_set = {}, added = {} }

-- Records that were taken together have equal active entries.
local unpacked_entries = {}

-- Jobs with parents or children are ended with the help of lib/parents, which is not even defined where no job has any: each function
-- that a call defines costs it time.
local families
if S.flows == 1 then
-- @include lib/parents
-- @include lib/find
  settling.by_turn = true
  families = { tell_parent = tell_parent, tell_span = tell_span, tell_failure = tell_failure, code_of = children_code, settle = settle_parents,
    cut_removed = cut_removed, flush = flush_visited, find = locate }
end

-- Vitals of a child that is at its first try hold nothing but its parent; those of siblings are equal.
local FRESH_CHILD = '\129\162pa'
local parents_in = {}

-- What waits for the job at this place of a taken frame; siblings share it.
local last_parent

-- Vitals of records that were taken together, returned nothing, and had none before or are siblings at their first try, are equal.
local plain_vitals = {}

-- A job that was let go and not moved belongs to nobody: once the lease of those let go with it has run out, a scan brings it back as
-- stalled.
local NOBODY = '-'

local function claim_at(claims, i)
  return type(claims) == 'table' and claims[i] or claims
end

-- @cold
local function unpack_active(raw)
  local entry = unpacked_entries[raw]
  if not entry then
    entry = F.stored().active(raw)
    unpacked_entries[raw] = entry
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
-- @warm

-- Reads what the outcomes are about in three calls, however many there are.
local function load_finish(outcomes)
  local firsts, ids = {}, {}
  for _, outcome in ipairs(outcomes) do
    local kind, first = outcome[1], outcome[2]
    if first > 0 then
      if not F.takes[first] then
        F.takes[first] = { n = outcome[3] }
        firsts[#firsts + 1] = whole(first)
      end
    elseif kind == 'r' or kind == 'f' then
      for _, id in ipairs(outcome[6]) do ids[#ids + 1] = id end
    else
      ids[#ids + 1] = outcome[6]
    end
  end
  local has_vitals = #ids > 0 and redis.call('EXISTS', base .. 'vitals') == 1
  for from = 1, #firsts, 4000 do
    local to = math.min(from + 3999, #firsts)
    for i, raw in ipairs(redis.call('HMGET', base .. 'takes', unpack(firsts, from, to))) do
      F.takes[tonumber(firsts[from + i - 1])].take = read_take(raw)
    end
  end
  for from = 1, #ids, 4000 do
    local to = math.min(from + 3999, #ids)
    local active = redis.call('HMGET', base .. 'active', unpack(ids, from, to))
    local vitals = has_vitals and redis.call('HMGET', base .. 'vitals', unpack(ids, from, to)) or {}
    if #outcomes == 1 and outcomes[1][1] == 'r' and #ids <= 4000 and are_alike(active, vitals) then
      F.alike = unpack_active(active[1])
      return
    end
    for i = 1, #active do
      F.active[ids[from + i - 1]] = active[i] and unpack_active(active[i])
      local id, raw = ids[from + i - 1], vitals[i]
      if raw and raw:sub(1, 4) == FRESH_CHILD then
        parents_in[raw] = parents_in[raw] or F.stored().vitals(raw).pa
        F.vitals[id], F.fresh[id] = { pa = parents_in[raw] }, raw
      else
        F.vitals[id] = raw and F.stored().vitals(raw)
      end
    end
  end
end

local ACTIVE = 49 -- '1'

-- Lets jobs of a frame leave their take; false when this claim does not hold all of them.
local function leave_take(outcome, offset, count, W, char)
  local n, entry = outcome[3], F.takes[outcome[2]]
  local take = entry.take
  if not take or take[3] ~= W.owner or not is_claim(take[5], outcome[5]) then return false end
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
  S.active = S.active - count
  return true
end

-- @cold
-- Reads a record that the outcomes take for a job of a frame.
local function load_record(id)
  local active, vitals = redis.call('HGET', base .. 'active', id), redis.call('HGET', base .. 'vitals', id)
  F.active[id], F.vitals[id] = active and unpack_active(active), vitals and F.stored().vitals(vitals)
end

-- The active entry of a record, when this claim holds it; else nil, and why.
local function leave_active(id, owner, claim)
  if F.active[id] == nil then load_record(id) end
  local active = F.active[id]
  if active and active[3] == owner and is_claim(active[5], claim) then
    F.active[id] = false
    F.active_del[#F.active_del + 1] = id
    S.active = S.active - 1
    return active
  end
  if active then return nil, ERROR_LOCK_MISMATCH end
  return nil, redis.call('HEXISTS', base .. 'jobs', id) == 1 and ERROR_LOCK_MISSING or ERROR_JOB_MISSING
end

-- large_bytes: of a result that lies apart (returnvalue is nil then).
local function completed_vitals(id, active, returnvalue, W, large_bytes)
  local vitals = F.vitals[id]
  local origin, alike = returnvalue == '' and (F.fresh[id] or not vitals and ''), plain_vitals[active] or {}
  if origin and alike[origin] then return alike[origin] end
  local known = vitals or {}
  known.am, known.as, known.po, known.fo = (known.am or 0) + 1, active[2], active[1], W.now_ms
  known.rv = returnvalue ~= '' and returnvalue or nil
  known.lr = large_bytes
  if active[4] ~= '' then known.pb = active[4] end
  known.d = nil
  local packed = cmsgpack.pack(known)
  if origin then
    plain_vitals[active] = alike
    alike[origin] = packed
  end
  return packed
end

-- What an owner of a deduplication id kept while it was active becomes a job, and the owner. A job of its id may exist by now.
local function add_next(item, body, W)
  local id, name, due_ms, front, dedup = item[2], item[3], item[4], item[5], item[6]
  S.id = S.id + 1
  if F.added[id] or redis.call('HEXISTS', base .. 'jobs', id) == 1 or (families and families.find(id)) then
    emit_job('duplicated', id)
    return false
  end
  local fields = F.stored().body(body)
  local delay_ms = math.max(due_ms - fields[1], 0)
  fields[1] = W.now_ms
  if #fields > 4 then expect_priorities() end
  F.added[id] = true
  append(F.jobs_set, id, cmsgpack.pack(fields))
  append(F.vitals_set, id, cmsgpack.pack({ di = dedup[1] }))
  if due_ms > 0 then
    due_ms = W.now_ms + delay_ms
    append(F.delayed, id)
    append(F.dues, due_ms)
    emit(2, { 'B', { id }, 1, name, 'delayed', { due_ms } })
  else
    append(front == 1 and F.front or F.waiting, id)
    emit(2, { 'B', { id }, 1, name, 'waiting' })
  end
  redis.call('SET', base .. 'de:' .. dedup[1], id)
  return true
end

-- A deduplicated job has finished for good. Its key goes, unless it has a ttl, or passes to the job that was kept.
local function finish_key(id, vitals, W)
  local kept = vitals.nx
  vitals.nx = nil
  if kept and add_next(kept[1], kept[2], W) then return end
  local key = base .. 'de:' .. vitals.di
  if redis.call('GET', key) == id and redis.call('PTTL', key) < 0 then redis.call('DEL', key) end
end

local function complete_records(ids, claims, keep, results, W)
  local removed, finished_on = W.keeps[keep][1] == 0, whole(W.now_ms)
  local done, values = {}, {}
  local vitals_set, completed_add = F.vitals_set, F.completed_add
  local function tell()
    if #done > 0 then emit(#done, { 'X', 'completed', done, 'returnvalue', results and values or 'null', 'prev', 'active' }) end
    done, values = {}, {}
  end
  for i, id in ipairs(ids) do
    if F.active[id] == nil then load_record(id) end
    local vitals, active, why = F.vitals[id], nil, nil
    if vitals and vitals.ch then why = families.code_of(id, W.now_ms) end
    if not why then active, why = leave_active(id, W.owner, claim_at(claims, i)) end
    if active then
      if vitals and vitals.di then
        tell()
        finish_key(id, vitals, W)
      end
      local n, value = #done + 1, results and results[i] or ''
      if vitals and vitals.pa then families.tell_parent(vitals.pa, id, 'processed', value == '' and 'null' or value) end
      done[n], values[n] = id, value == '' and 'null' or value
      if removed then
        F.dropped[#F.dropped + 1] = id
        F.removed = F.removed + 1
      else
        S.completed = S.completed + 1
        F.completed[keep] = (F.completed[keep] or 0) + 1
        n = #vitals_set
        vitals_set[n + 1], vitals_set[n + 2] = id, completed_vitals(id, active, value, W)
        n = #completed_add
        completed_add[n + 1], completed_add[n + 2] = finished_on, id
      end
    else
      F.rejected[#F.rejected + 1] = { 0, id, why, claim_at(claims, i) }
    end
  end
  tell()
end

-- The ids and their results, each once.
local function without_twins(ids, results, claim)
  local seen, once, theirs = {}, {}, results and {}
  for i, id in ipairs(ids) do
    if seen[id] then
      F.rejected[#F.rejected + 1] = { 0, id, ERROR_LOCK_MISSING, claim }
    else
      seen[id] = true
      once[#once + 1] = id
      if results then theirs[#once] = results[i] end
    end
  end
  return once, theirs
end

-- Completes records that were taken together and had no vitals. False when another claim holds them.
local function complete_alike(outcome, W)
  local claim, ids, keep, active = outcome[5], outcome[6], outcome[7], F.alike
  local results = outcome[8] ~= '' and cmsgpack.unpack(outcome[8])
  if active[3] ~= W.owner or type(claim) == 'table' or not is_claim(active[5], claim) then return false end
  if redis.call('HDEL', base .. 'active', unpack(ids)) < #ids then
    ids, results = without_twins(ids, results, claim)
  end
  local n = #ids
  S.active = S.active - n
  if W.keeps[keep][1] == 0 then
    F.dropped, F.removed = ids, n
  else
    S.completed, F.completed[keep] = S.completed + n, n
    local vitals_set, completed_add, finished_on = F.vitals_set, F.completed_add, whole(W.now_ms)
    local alike = completed_vitals('', active, '', W)
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
  emit(n, { 'X', 'completed', ids, 'returnvalue', results or 'null', 'prev', 'active' })
  return true
end
-- @warm

-- @cold
-- Jobs of a frame of children completed, one behind the other.
local function tell_parents(brood, first, offset, count, results)
  local values = results ~= '' and cmsgpack.unpack(results)
  local parents, counts = brood[4], brood[5]
  local from, to = 0, offset + count
  for i = 1, #parents do
    local next_from = from + counts[i]
    if from >= to then break end
    if next_from > offset then
      local pa = { brood[2], parents[i], brood[3], first + from, counts[i] }
      if from >= offset and next_from <= to then
        families.tell_span(pa, brood[1], values and cmsgpack.pack({ unpack(values, from - offset + 1, next_from - offset) }) or '')
      else
        for at = math.max(from, offset), math.min(next_from, to) - 1 do
          local value = values and values[at - offset + 1] or ''
          families.tell_parent(pa, id_in(brood[1], first + at), 'processed', value == '' and 'null' or value)
        end
      end
    end
    from = next_from
  end
end
-- @warm

local function complete_jobs(outcome, W)
  local first, n, offset, _, count, keep, results = unpack(outcome, 2, 8)
  local removed = W.keeps[keep][1] == 0
  if not leave_take(outcome, offset, count, W, removed and '0' or 'k') then return false end
  local take, ids = F.takes[first].take, nil
  local brood = brood_in(take)
  if brood then
    ids = brood[1]
    tell_parents(brood, first, offset, count, results)
  end
  if not removed then
    local number = whole(first + offset)
    F.runs_set[#F.runs_set + 1] = number
    F.runs_set[#F.runs_set + 1] = cmsgpack.pack({ count, first, n, take[1], take[4], results, ids })
    F.completed_add[#F.completed_add + 1] = W.now_ms
    F.completed_add[#F.completed_add + 1] = number
    S.completed = S.completed + count
    F.completed[keep] = (F.completed[keep] or 0) + count
  else
    F.removed = F.removed + count
  end
  emit(count, { 'C', first + offset, count, results, ids })
  return true
end

-- @cold
local function parent_at(first, offset)
  local brood = brood_in(F.takes[first].take)
  if not brood then return nil end
  local pa = parent_in(brood, first, offset)
  if last_parent and last_parent[4] == pa[4] then return last_parent end
  last_parent = pa
  return pa
end

-- What a failed try leaves of a job in its vitals.
local function failed_vitals(vitals, active, outcome, W)
  F.stored().start(vitals, active)
  vitals.am = outcome[11]
  vitals.fr = outcome[13] ~= '' and outcome[13] or nil
  -- an error without a message has stack traces, too
  if not vitals.fr then vitals.tr = '' end
  vitals.d = nil
  -- what the job is to fail for stays until it has failed for good
  if outcome[8] == 'failed' then vitals.fo, vitals.df = W.now_ms, nil end
  if outcome[8] == 'delayed' then vitals.d = math.max(outcome[10] - W.now_ms, 0) end
  return cmsgpack.pack(vitals)
end

-- A job has failed for good.
local function settle_failed(id, outcome, W)
  local keep, reason = outcome[9], outcome[13]
  local n = #F.failed_add
  F.failed_add[n + 1], F.failed_add[n + 2] = W.now_ms, id
  F.failed[keep] = (F.failed[keep] or 0) + 1
  if W.keeps[keep][1] == 0 then F.dropped[#F.dropped + 1] = id end
  emit_job('failed', id, 'active', 'failedReason', reason)
  if outcome[12] == 1 then emit_job('retries-exhausted', id, nil, 'attemptsMade', whole(outcome[11])) end
end

-- Jobs are tried again.
local function place_failed(ids, to, due_ms)
  local list = to == 'delayed' and F.delayed or to == 'front' and F.front or F.waiting
  for _, id in ipairs(ids) do
    list[#list + 1] = id
    if to == 'delayed' then F.dues[#list] = due_ms end
  end
  if to == 'delayed' then
    emit(#ids, { 'X', 'delayed', ids, 'delay', whole(due_ms) })
  else
    emit(#ids, { 'X', 'waiting', ids, 'prev', 'active' })
  end
end

local function fail_jobs(outcome, W)
  local first, _, offsets, claims, ids, bodies, to = unpack(outcome, 2, 8)
  local keep, reason, traces = outcome[9], outcome[13], outcome[14]
  local again, fresh, fresh_parent = {}, nil, nil
  for i, id in ipairs(ids) do
    local claim, active, why, packed = claim_at(claims, i), nil, nil, nil
    if first > 0 and leave_take(outcome, offsets[i], 1, W, '0') then
      local n, take = #F.jobs_set, F.takes[first].take
      F.jobs_set[n + 1], F.jobs_set[n + 2] = id, bodies[i]
      local pa = parent_at(first, offsets[i])
      if pa and to == 'failed' then families.tell_failure(pa, id, reason, W.keeps[keep][1] == 0) end
      -- jobs of one frame, and parent, that fail alike, for the first time, have equal vitals
      if not fresh or fresh_parent ~= pa then
        fresh, fresh_parent = failed_vitals({ pa = pa }, { take[1], 1, W.owner, take[4] }, outcome, W), pa
      end
      packed = fresh
    else
      active, why = leave_active(id, W.owner, claim)
      local vitals = F.vitals[id] or {}
      if active and to == 'failed' then
        if vitals.di then finish_key(id, vitals, W) end
        if vitals.pa then families.tell_failure(vitals.pa, id, reason, W.keeps[keep][1] == 0) end
      end
      packed = active and failed_vitals(vitals, active, outcome, W)
    end
    if packed then
      local n = #F.vitals_set
      F.vitals_set[n + 1], F.vitals_set[n + 2] = id, packed
      local trace = type(traces) == 'table' and traces[i] or traces
      if trace ~= '' then
        n = #F.traces_set
        F.traces_set[n + 1], F.traces_set[n + 2] = id, trace
      end
      if to == 'failed' then settle_failed(id, outcome, W) else again[#again + 1] = id end
    else
      F.rejected[#F.rejected + 1] = first > 0 and { first, offsets[i], why, claim } or { 0, id, why, claim }
    end
  end
  if #again > 0 then place_failed(again, to, outcome[10]) end
end
-- @warm

-- @cold
-- Jobs of a frame that left it one by one since it was taken are records, or somebody else's.
local function complete_scattered(outcome, W)
  local first, n, offset, claim, count, keep = unpack(outcome, 2, 7)
  local results, ids = outcome[8] ~= '' and cmsgpack.unpack(outcome[8]) or {}, outcome[9]
  for i = 0, count - 1 do
    local value = results[i + 1] or ''
    local single = { 'c', first, n, offset + i, claim, 1, keep, value ~= '' and cmsgpack.pack({ value }) or '' }
    if not complete_jobs(single, W) then
      local refused = #F.rejected
      complete_records({ id_in(ids, first + offset + i) }, claim, keep, { value }, W)
      -- named by its place, as it was asked for
      if #F.rejected > refused then F.rejected[#F.rejected] = { first, offset + i, F.rejected[#F.rejected][3], claim } end
    end
  end
end

-- Takes one job out of its frame or out of the active records. Gives its active entry, or nil and why.
local function take_out(outcome, W)
  local first, _, offset, claim, id, body = unpack(outcome, 2, 7)
  if first > 0 and leave_take(outcome, offset, 1, W, '0') then
    F.jobs_set[#F.jobs_set + 1] = id
    F.jobs_set[#F.jobs_set + 1] = body
    local take, pa = F.takes[first].take, parent_at(first, offset)
    if pa then
      F.vitals[id] = { pa = pa }
      append(F.vitals_set, id, cmsgpack.pack(F.vitals[id]))
    end
    return { take[1], 1, W.owner, take[4] }
  end
  return leave_active(id, W.owner, claim)
end

-- What is large is written as it came, once for the job and once for the event, and is in no other text: Lua copies each. A job that
-- ends with other options than its neighbours comes this way as well, and may have no result ('').
local function complete_large(outcome, W)
  local id, keep, result = outcome[6], outcome[8], W.large_results[outcome[9]]
  local has_result = result ~= ''
  local told = has_result and result or 'null'
  local code = F.vitals[id] and F.vitals[id].ch and families.code_of(id, W.now_ms)
  if code then return code end
  local active, why = take_out(outcome, W)
  if not active then return why end
  local vitals = F.vitals[id] or {}
  if vitals.di then finish_key(id, vitals, W) end
  if vitals.pa then families.tell_parent(vitals.pa, id, 'processed', told) end
  emit(1, { 'L', id })
  append(large_values, 'v', told)
  if W.keeps[keep][1] == 0 then
    -- a job of a frame has no record yet, and needs none
    if F.jobs_set[#F.jobs_set - 1] == id then F.jobs_set[#F.jobs_set], F.jobs_set[#F.jobs_set - 1] = nil, nil end
    append(F.dropped, id)
    F.removed = F.removed + 1
    return nil
  end
  if has_result then redis.call('HSET', base .. 'large', 'r' .. id, result) end
  S.completed = S.completed + 1
  F.completed[keep] = (F.completed[keep] or 0) + 1
  append(F.vitals_set, id, completed_vitals(id, active, nil, W, has_result and #result or nil))
  append(F.completed_add, whole(W.now_ms), id)
  return nil
end

local function give_back(outcome, W)
  local id, started = outcome[6], outcome[8]
  local active, why = take_out(outcome, W)
  if not active then return why end
  local vitals = F.vitals[id] or {}
  if started == 1 then
    F.stored().start(vitals, active)
    F.met_limit = true
  else
    vitals.as = active[2] - 1
  end
  F.vitals_set[#F.vitals_set + 1] = id
  F.vitals_set[#F.vitals_set + 1] = cmsgpack.pack(vitals)
  table.insert(F.front, id)
  F.places[id] = started == 1 and 'front' or 'back'
  emit_job('waiting', id, 'active')
  return nil
end

local function let_go(outcome, W)
  local id = outcome[6]
  local active = take_out(outcome, W)
  if not active then return end
  if F.active_del[#F.active_del] == id then F.active_del[#F.active_del] = nil end
  S.active = S.active + 1
  -- a lease of this step alone: one that later steps renewed would keep the job from coming back
  local nobody = NOBODY .. W.owner .. '.' .. W.claim
  F.active_set[#F.active_set + 1] = id
  F.active_set[#F.active_set + 1] = cmsgpack.pack({ active[1], active[2], nobody, active[4], ANY_CLAIM })
  redis.call('SET', base .. 'lease:' .. nobody, 1, 'PX', W.lease_ms)
end
-- @warm

-- @cold
-- A job without a record that is refused may lie in a frame: it was taken again, by somebody else, or another one has its id by now.
local function name_mismatches()
-- @include lib/find
  for _, refusal in ipairs(F.rejected) do
    local first, place, code = refusal[1], refusal[2], refusal[3]
    local job = code == ERROR_JOB_MISSING and locate(first > 0 and whole(first + place) or place)
    if job then refusal[3] = job.state == 'active' and ERROR_LOCK_MISMATCH or ERROR_LOCK_MISSING end
  end
end
-- @warm

local function write_finish()
  for first, entry in pairs(F.takes) do
    if entry.left then
      if entry.bytes then entry.take[2] = string.char(unpack(entry.bytes)) end
      store_take(first, entry.n, entry.take)
    end
  end
  call_in_chunks('HDEL', base .. 'active', F.active_del)
  call_in_chunks('HSET', base .. 'active', F.active_set)
  call_in_chunks('HSET', base .. 'jobs', F.jobs_set)
  call_in_chunks('HSET', base .. 'vitals', F.vitals_set)
  call_in_chunks('HSET', base .. 'traces', F.traces_set)
  call_in_chunks('HSET', base .. 'runs', F.runs_set)
  call_in_chunks('ZADD', base .. 'completed', F.completed_add)
  call_in_chunks('ZADD', base .. 'failed', F.failed_add)
  if #F.delayed > 0 then delay_jobs(F.delayed, F.dues) end
  if #F.dropped > 0 then
    for from = 1, #F.dropped, 1000 do
      redis.call('ZREM', base .. 'failed', unpack(F.dropped, from, math.min(from + 999, #F.dropped)))
    end
    drop_records(F.dropped, true, true)
  end
  enter_line(F.waiting)
  enter_front(F.front, F.places)
end

-- Applies the outcomes. W: owner, lease_ms, now_ms, keeps. Gives {frame_first, offset, code, claim} or {0, id, code, claim} of
-- each one refused.
local function finish(outcomes, W)
  close_group()
  local told = #event_groups
  load_finish(outcomes)
  for _, outcome in ipairs(outcomes) do
    local kind, why = outcome[1], nil
    if kind == 'c' then
      if not complete_jobs(outcome, W) then complete_scattered(outcome, W) end
    elseif kind == 'r' then
      if not (F.alike and complete_alike(outcome, W)) then
        complete_records(outcome[6], outcome[5], outcome[7], outcome[8] ~= '' and cmsgpack.unpack(outcome[8]), W)
      end
    elseif kind == 'f' then
      fail_jobs(outcome, W)
    elseif kind == 'm' then
      let_go(outcome, W)
    elseif kind == 'l' then
      why = complete_large(outcome, W)
    else
      why = give_back(outcome, W)
    end
    if why then
      if outcome[2] > 0 then
        table.insert(F.rejected, { outcome[2], outcome[4], why, outcome[5] })
      else
        table.insert(F.rejected, { 0, outcome[6], why, outcome[5] })
      end
    end
  end
  if #F.rejected > 0 then name_mismatches() end
  write_finish()
  local points = W.keeps[1] and W.keeps[1][4]
  for _, set in ipairs({ 'completed', 'failed' }) do
    local ended = set == 'completed' and F.removed or 0
    for keep, count in pairs(F[set]) do
      apply_keep(set, W.keeps[keep], W.now_ms, count)
      ended = ended + count
    end
    if points and ended > 0 then count_minutes(set, ended, W.now_ms, points) end
  end
  if families then
    close_group()
    local ended = #event_groups
    families.cut_removed()
    families.settle(W.now_ms)
    close_group()
    -- parents that wait in this queue start before their last child is told to have ended
    for i = ended + 1, #event_groups do table.insert(event_groups, told + i - ended, table.remove(event_groups, i)) end
    families.flush(W.now_ms)
  end
  return F.rejected
end
