-- round_trip: what one round trip does to a queue. Finishes what is done, then fetches what the queue's limits let through.
-- step: now_ms, starts_ms (what is fetched starts then; nil: now), owner, claim (of what is fetched), lease_ms, takes_as (owner of what is
-- fetched, if that is another), worker_name, keeps, max_bytes, limiter_max and limiter_ms (rules/limits), leaves_due (true: delayed jobs stay
-- where they are), none_delayed (true: the queue never had any), asks_due (true: who asks is told when the next job is due in any case), large
-- (step/finish; false: none), group_rules (step/turns), server_ms, ahead_ms (of the caller's clock, before the server's). want = -1: nothing is fetched. Gives the refusals, the time at which the next job is due (nil unless less was taken than
-- wanted, or asks_due), gated: 1 if jobs wait that must not start now, limited_ms: for how long the rate limit lets this worker start no more
-- (0 = it does), and whether work is left that somebody may start, or this step took none and delayed what was due (step/fetched).
local Due = require('due')
local Events = require('events')
local Fetch = require('fetch')
local Fetched = require('fetched')
local Finish = require('finish')
local Groups = require('groups')
local Limits = require('limits')
local WaitingList = require('waiting_list')

local NONE = {}

-- Takes what may start. Gives gated and limited_ms.
local function fetch_within_limits(queue, want, surplus, step)
  local fetched = queue.fetched
  local limits = queue.limits
  if limits == Limits.NO_LIMITS then
    Fetch.fetch(queue, want, surplus, step)
    return 0, 0
  end
  local room = Limits.room_in_window(queue)
  if room == 0 then return 1, Limits.rest_of_window(queue) end
  if limits.paused or (want == 0 and limits.concurrency < math.huge) then return 1, 0 end
  if limits.max or limits.concurrency < math.huge then surplus = 0 end
  Fetch.fetch(queue, math.min(want, room), surplus, step)
  if not limits.max then return 0, 0 end
  local starts = fetched.taken - fetched.doomed
  Limits.count_starts(queue, starts)
  if starts < room or fetched.taken == want then return 0, 0 end
  return 1, Limits.rest_of_window(queue)
end

-- A parent that must not complete keeps its place until it has failed.
local function kept_places(rejected)
  local kept = 0
  for _, refusal in ipairs(rejected) do
    if refusal[3] == -4 or refusal[3] == -9 then kept = kept + 1 end
  end
  return kept
end

-- Whether one of the outcomes is an end for good.
local function has_end(outcomes)
  for _, outcome in ipairs(outcomes) do
    local kind = outcome[1]
    if kind == 'r' or kind == 'c' or kind == 'l' or (kind == 'f' and outcome[8] == 'failed') then return true end
  end
  return false
end

-- Where one of the outcomes is to be tried again at once, jobs that are due stand before it, even if it is refused.
local function promote_before_retry(queue, outcomes, now_ms)
  for _, outcome in ipairs(outcomes) do
    if outcome[1] == 'f' and outcome[8] == 'waiting' then
      Due.promote(queue, now_ms)
      return
    end
  end
end

-- Takes up to `want` jobs that wait or are due, as far as there are free places. Gives gated, limited_ms, and when the next job is due.
local function fetch_due(queue, wanted, surplus, step)
  local want = math.min(wanted, Limits.free_places(queue))
  Groups.open_due(queue, step.server_ms)
  if not (step.leaves_due or queue.none_delayed) then Due.promote_for(queue, math.min(want + surplus, Fetched.MOST_RECORDS), step.now_ms) end
  step.now_ms = step.starts_ms or step.now_ms
  local gated, limited_ms = fetch_within_limits(queue, want, surplus, step)
  if queue.promoted then Due.enter(queue) end
  if limited_ms > 0 or not (queue.fetched.taken < wanted or step.asks_due) then return gated, limited_ms, nil end
  local due, opening = not queue.none_delayed and Due.next_ms(queue) or nil, Groups.next_opening(queue)
  if opening then due = math.min(due or math.huge, opening + step.ahead_ms) end
  return gated, limited_ms, due
end

-- Whether somebody may start what is left.
local function may_start(queue)
  return not queue.limits.paused and Limits.free_places(queue) > 0
end

local function run(queue, outcomes, want, surplus, step)
  Fetched.start(queue)
  -- as it was before this step wakes anybody
  if surplus > 0 and not WaitingList.are_all_busy(queue.base) then surplus = 0 end
  Limits.load_limits(queue, step.limiter_max, step.limiter_ms)
  queue.none_delayed = step.none_delayed
  local rejected, was_active, ends = NONE, queue.active > 0, false
  if #outcomes > 0 then
    ends = has_end(outcomes)
    promote_before_retry(queue, outcomes, step.now_ms)
    rejected = Finish.finish(queue, outcomes, step)
    if #rejected > 0 and want > 0 then want = math.max(want - kept_places(rejected), 0) end
  end
  if step.takes_as then step.owner, step.packed_worker = step.takes_as, nil end

  -- a worker whose job met a rate limit rests until the window ends, whatever its own limit
  local finishing = queue.finishing
  local gated, limited_ms, due = 0, finishing and finishing.met_limit and Limits.rest_of_window(queue) or 0, nil
  if limited_ms > 0 then
    gated = 1
  elseif want >= 0 then
    gated, limited_ms, due = fetch_due(queue, want, surplus, step)
  end
  step.taken = queue.fetched.taken
  -- somebody who waits must hear of what this worker leaves, or delayed and does not look after itself
  local is_work_left = queue.promoted and queue.promoted.more or WaitingList.has_work(queue)
  local is_left = is_work_left and may_start(queue)
  local is_delayed = queue.fetched.put_off > 0 or (finishing and rawget(finishing, 'delayed'))
  if is_left or (is_delayed and not due) then
    WaitingList.wake(queue)
  end
  if ends and was_active and queue.fetched.taken == 0 and gated == 0 and (want <= 0 or not due) and queue.active == 0 and not is_work_left then
    Events.emit(queue, 1, { 'E', 'drained' })
  end
  Events.flush_events(queue, step.now_ms)
  -- a worker that is not told takes it that another one came first to what was due, and looks later from then on (src/worker/take/due.rs)
  return rejected, due, gated, limited_ms, is_left or (step.taken == 0 and queue.fetched.put_off > 0)
end

return {
  may_start = may_start,
  promote_before_retry = promote_before_retry,
  run = run,
}
