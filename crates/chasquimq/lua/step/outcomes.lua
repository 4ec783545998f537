-- outcomes: what a step's outcomes come to, gathered job by job and written together; then the rules by which finished jobs are kept, and counted.
local Delayed = require('delayed')
local Frame = require('frame')
local Groups = require('groups')
local Metrics = require('metrics')
local Prioritized = require('prioritized')
local Records = require('records')
local Retention = require('retention')
local State = require('state')
local WaitingList = require('waiting_list')

-- Of a queue: finishing, what a step's outcomes come to. Of what is equal for many jobs it keeps one: unpacked_entries, as records that were
-- taken together have equal active entries; parents_in, the parents in state fields that hold nothing else; last_parent, what waits for the job at
-- this place of a taken frame; equal, by id, the text of state fields that other records may have as well, and known_fields, what it says
-- (not to be changed: Leave.own_fields); plain_fields, what they become where records were taken together and returned nothing.
local function start(queue)
  queue.finishing = State.with_lists({ removed = 0, failed_removed = 0, alike = false, alike_groups = false, last_parent = false, met_limit = false, is_late = false })
  queue.call.by_turn = true
end

-- Jobs ended, one behind the other, and are kept by this rule: how many of each rule, and how many in all until the last of them.
local function note_kept(queue, set, keep, count)
  local kept = queue.finishing[set]
  local of_rule = kept[keep] or { 0, 0 }
  kept.all = (kept.all or 0) + count
  of_rule[1], of_rule[2] = of_rule[1] + count, kept.all
  kept[keep] = of_rule
end

-- What is written, in this order: command, key, list.
local WRITES = {
  { 'HDEL', 'active', 'active_del' },
  { 'HSET', 'active', 'active_set' },
  { 'HSET', 'jobs', 'jobs_set' },
  { 'HSET', 'vitals', 'fields_set' },
  { 'HSET', 'traces', 'traces_set' },
  { 'HSET', 'runs', 'runs_set' },
  { 'ZADD', 'completed', 'completed_add' },
  { 'ZADD', 'failed', 'failed_add' },
}

-- Whether none of these records has state fields, by what was read, and is to be written.
local function are_bare(finishing, ids)
  if rawget(finishing, 'fields_set') then return false end
  local fields = rawget(finishing, 'fields')
  for i = 1, fields and #ids or 0 do
    if fields[ids[i]] then return false end
  end
  return true
end

local FINISHED, NONE = { 'completed', 'failed' }, {}

-- Whether one of the rules by which these jobs are kept has a count.
local function has_count(step, kept)
  for keep in pairs(kept or NONE) do
    if keep ~= 'all' and step.keeps[keep][1] > 0 then return true end
  end
  return false
end

local function write(queue, step)
  local finishing = queue.finishing
  for first, entry in pairs(finishing.frames) do
    if entry.left then
      if entry.bytes then entry.holder[2] = string.char(unpack(entry.bytes)) end
      Frame.store_holder(queue, first, entry.n, entry.holder)
    end
  end
  for _, set in ipairs(FINISHED) do
    local list = rawget(finishing, set .. '_add')
    if list then Retention.rank_ends(queue, set, list, step.now_ms, has_count(step, rawget(finishing, set))) end
  end
  for _, write in ipairs(WRITES) do
    local list = rawget(finishing, write[3])
    if list then WaitingList.call_in_chunks(write[1], queue.base .. write[2], list) end
  end
  if rawget(finishing, 'delayed') then Delayed.delay_jobs(queue, finishing.delayed, finishing.dues) end
  local dropped = rawget(finishing, 'dropped')
  if dropped and #dropped > 0 then
    for from = 1, rawget(finishing, 'failed_add') and #dropped or 0, 1000 do
      redis.call('ZREM', queue.base .. 'failed', unpack(dropped, from, math.min(from + 999, #dropped)))
    end
    Records.drop_records(queue, dropped, true, true, are_bare(finishing, dropped))
  end
  Groups.free_left(queue)
  if rawget(finishing, 'waiting') then Prioritized.enter(queue, finishing.waiting) end
  if rawget(finishing, 'front') then Prioritized.enter_front(queue, finishing.front, finishing.places) end
  if rawget(finishing, 'latest') then Prioritized.enter_latest(queue, finishing.latest) end
end

-- Applies the retention rules to what ended, and counts it.
local function apply_rules(queue, step)
  local finishing = queue.finishing
  local points = step.keeps[1] and step.keeps[1][4]
  for _, set in ipairs(FINISHED) do
    local kept = rawget(finishing, set) or NONE
    for keep, of_rule in pairs(kept) do
      if keep ~= 'all' then Retention.apply_keep(queue, set, step.keeps[keep], step.now_ms, of_rule[1], kept.all - of_rule[2]) end
    end
    local ended = (kept.all or 0) + (set == 'completed' and finishing.removed or finishing.failed_removed)
    if points and ended > 0 then Metrics.count_minutes(queue, set, ended, step.now_ms, points) end
  end
end

return {
  start = start,
  note_kept = note_kept,
  write = write,
  apply_rules = apply_rules,
}
