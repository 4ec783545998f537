-- turn: what one round trip does to a queue. Finishes what is done, then fetches what the queue's gate lets through.
-- W: now_ms, owner, worker_name, keeps, max_bytes. want = -1: nothing is fetched. Gives the refusals, the time at which the next job is
-- due (nil unless less was taken than wanted), and gated: 1 if jobs wait that must not start now.
local function turn(outcomes, want, surplus, W)
  local settings = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency')
  local paused, concurrency = settings[1], tonumber(settings[2] or 0)

  local rejected, was_active = {}, S.active > 0
  if #outcomes > 0 then
    -- jobs that are due stand before jobs that are tried again
    for _, outcome in ipairs(outcomes) do
      if outcome[1] == 'f' and outcome[7] == 'waiting' then
        promote_due(W.now_ms)
        break
      end
    end
    rejected = finish(outcomes, W)
  end

  local gated, due = 0, nil
  if want >= 0 then
    promote_due(W.now_ms)
    if concurrency > 0 then
      want = math.min(want, math.max(concurrency - S.active, 0))
      surplus = 0
    end
    if paused or (concurrency > 0 and want == 0) then
      gated = 1
    else
      fetch(want, surplus, W)
    end
    if R.taken < want then due = next_due() end
  end
  -- somebody who waits must hear of what this worker put back, or delayed, and does not look after itself
  local room_for_others = not paused and (concurrency == 0 or S.active < concurrency)
  if (room_for_others and (want < 0 or gated == 1) and has_work()) or (#F.delayed > 0 and not due) then wake() end
  if was_active and R.taken == 0 and gated == 0 and not due and S.active == 0 and not has_work() then
    emit(1, { 'E', 'drained' })
  end
  flush_events(W.now_ms)
  save_state()
  return rejected, due, gated
end
