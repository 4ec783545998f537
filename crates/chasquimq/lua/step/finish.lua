-- finish: active -> completed | failed | delayed | waiting | prioritized, for a batch of outcomes of one worker.
-- An outcome (an array) starts with its kind, where the job is: frame first and n (0 0 = a record), offset, and its claim (jobs/frame): an
-- outcome of a claim that holds the job no more is refused.
--   {c, first, n, offset, claim, count, keep, results, ids}          completed jobs of a frame, one behind the other; ids: only of
--        children, what theirs begin with (jobs/frame)
--   {r, 0, 0, 0, claims, ids, keep, results}                         completed records; claims: one for all, or one a job
--        results: '' (all undefined) or a MessagePack array of JSON texts ('' = undefined)
--   {l, first, n, offset, claim, id, body, keep, at}                 completed with a large result (jobs/large): step.large[at]; body: '' where
--        the job is not kept
--   {f, first, n, offsets, claims, ids, bodies, to, keep, due_ms, attempts_made, exhausted, reason, traces, wordless, measured}   failed
--        tries that end alike; to: failed | delayed | waiting | front; delay is due_ms - now_ms; bodies only for jobs of a frame; traces: one
--        text, or one a job; wordless, if it is there: 1 for what was thrown without a message, whose reason is empty; measured: 1 where it is
--        noted from when on the job can start again (rules/latency)
--   {b, first, n, offset, claim, id, body, started}                  back to the front of the waiting list, unfinished; started: it met a rate
--        limit, else its handler never ran
--   {m, first, n, offset, claim, id, body}                           let go: its handler said that it moved the job elsewhere
-- A body whose data go apart (jobs/large) is {body without them, at}: they are step.large[at].
-- keep is an index into keeps: rules {count, age, limit} of rules/retention; count 0 removes at once. A fourth number is that of the minutes
-- for which finished jobs are counted (rules/metrics).
local Complete = require('complete')
local Events = require('events')
local Fail = require('fail')
local KeyLimits = require('key_limits')
local Leave = require('leave')
local OtherQueues = require('other_queues')
local Outcomes = require('outcomes')
local Parents = require('parents')
local Unfinished = require('unfinished')

-- Records what a job, or several that ended alike, came to. Gives why it is refused, where its jobs are not refused one by one.
local function record(queue, outcome, step)
  local kind = outcome[1]
  if kind == 'c' then
    if not Complete.complete_jobs(queue, outcome, step) then Complete.complete_scattered(queue, outcome, step) end
  elseif kind == 'r' then
    if not (queue.finishing.alike and Complete.complete_alike(queue, outcome, step)) then
      Complete.complete_records(queue, outcome[6], outcome[5], outcome[7], outcome[8] ~= '' and cmsgpack.unpack(outcome[8]), step)
    end
  elseif kind == 'f' then
    Fail.fail_jobs(queue, outcome, step)
  elseif kind == 'm' then
    Unfinished.let_go(queue, outcome, step)
  elseif kind == 'l' then
    return Complete.complete_large(queue, outcome, step)
  else
    return Unfinished.give_back(queue, outcome, step)
  end
end

-- Records one outcome, and that it is refused.
local function take(queue, outcome, step)
  local rejected, first = queue.finishing.rejected, outcome[2]
  local why = record(queue, outcome, step)
  if why then rejected[#rejected + 1] = { first, first > 0 and outcome[4] or outcome[6], why, outcome[5] } end
end

-- Parents that were put aside complete behind all others, or are refused.
local function take_late(queue, parents, step)
  local rejected = queue.finishing.rejected
  queue.finishing.is_late = true
  for _, outcome in ipairs(parents) do
    local refused, place = #rejected, outcome.place
    take(queue, outcome, step)
    if place and #rejected > refused then rejected[#rejected] = { place[1], place[2], rejected[#rejected][3], outcome[5] } end
  end
end

-- Tells parents in any queue what became of their children. told: of the groups of events, those before this step's outcomes.
local function settle_families(queue, told, now_ms)
  Events.close_group(queue)
  local ended = #queue.event_groups
  Parents.cut_removed(queue)
  Parents.settle_parents(queue, now_ms)
  Events.close_group(queue)
  -- parents that wait in this queue start before their last child is told to have ended
  for i = ended + 1, #queue.event_groups do table.insert(queue.event_groups, told + i - ended, table.remove(queue.event_groups, i)) end
  OtherQueues.flush_visited(queue, now_ms)
end

-- Applies the outcomes. step: owner, lease_ms, now_ms, keeps. Gives {frame_first, offset, code, claim} or {0, id, code, claim} of
-- each one refused.
local function finish(queue, outcomes, step)
  Outcomes.start(queue)
  local rejected = queue.finishing.rejected
  Events.close_group(queue)
  local told = #queue.event_groups
  Leave.load(queue, outcomes)
  for _, outcome in ipairs(outcomes) do take(queue, outcome, step) end
  local aside = rawget(queue.finishing, 'aside')
  if aside then take_late(queue, aside, step) end
  if #rejected > 0 then Leave.name_mismatches(queue) end
  Outcomes.write(queue, step)
  KeyLimits.save(queue)
  Outcomes.apply_rules(queue, step)
  if queue.flows == 1 then settle_families(queue, told, step.now_ms) end
  return rejected
end

return {
  finish = finish,
}
