-- turn: what one round trip does to a queue. Finishes what is done, then fetches what the queue's limits let through.
-- W: now_ms, starts_ms (what is fetched starts then; nil: now), owner, claim (of what is fetched), lease_ms, takes_as (owner of what is
-- fetched, if that is another), worker_name, keeps, max_bytes, limiter_max and limiter_ms (lib/limit), leaves_due (true: delayed jobs stay
-- where they are), large_results (lib/finish; false: none). want = -1: nothing is fetched. Gives the refusals, the time at which the next
-- job is due (nil unless less was taken than wanted), gated: 1 if jobs wait that must not start now, and limited_ms: for how long the rate
-- limit lets this worker start no more (0 = it does).

-- Takes what may start. Gives gated and limited_ms.
local function fetch_within_limits(want, surplus, W)
  local room = room_in_window()
  if room == 0 then return 1, rest_of_window() end
  if L.paused or (want == 0 and L.concurrency < math.huge) then return 1, 0 end
  if L.max or L.concurrency < math.huge then surplus = 0 end
  fetch(math.min(want, room), surplus, W)
  if not L.max then return 0, 0 end
  local starts = R.taken - R.doomed
  count_starts(starts)
  if starts < room or R.taken == want then return 0, 0 end
  return 1, rest_of_window()
end

-- A parent that must not complete keeps its place until it has failed.
local function kept_places(rejected)
  local kept = 0
  for _, refusal in ipairs(rejected) do
    if refusal[3] == -4 or refusal[3] == -9 then kept = kept + 1 end
  end
  return kept
end

local function turn(outcomes, want, surplus, W)
  load_limits(W.limiter_max, W.limiter_ms)
  local rejected, was_active, ends = {}, S.active > 0, false
  if #outcomes > 0 then
    local promoted = false
    for _, outcome in ipairs(outcomes) do
      local failed = outcome[1] == 'f'
      ends = ends or outcome[1] == 'c' or outcome[1] == 'r' or outcome[1] == 'l' or (failed and outcome[8] == 'failed')
      -- jobs that are due stand before jobs that are tried again
      if failed and outcome[8] == 'waiting' and not promoted then
        promoted = true
        promote_due(W.now_ms)
      end
    end
    rejected = finish(outcomes, W)
  end
  W.owner = W.takes_as or W.owner

  -- a worker whose job met a rate limit rests until the window ends, whatever its own limit
  local limited_ms, due = F.met_limit and rest_of_window() or 0, nil
  local gated = limited_ms > 0 and 1 or 0
  if want >= 0 and gated == 0 then
    want = math.min(math.max(want - kept_places(rejected), 0), free_places())
    if not W.leaves_due then promote_due_for(want + surplus, W.now_ms) end
    W.now_ms = W.starts_ms or W.now_ms
    gated, limited_ms = fetch_within_limits(want, surplus, W)
    enter_due()
    if R.taken < want and limited_ms == 0 then due = next_due() end
  end
  -- somebody who waits must hear of what this worker leaves, or delayed and does not look after itself
  local is_work_left = D.more or has_work()
  if (is_work_left and not L.paused and free_places() > 0) or (#outcomes > 0 and #F.delayed > 0 and not due) then wake() end
  if ends and was_active and R.taken == 0 and gated == 0 and not due and S.active == 0 and not is_work_left then
    emit(1, { 'E', 'drained' })
  end
  flush_events(W.now_ms)
  return rejected, due, gated, limited_ms
end
