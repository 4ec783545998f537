-- limits: how many jobs may start now: none while the queue is paused, no more than its global concurrency leaves, and no more than its
-- rate limit leaves of the window. The window is the string `limiter`: it counts starts, and expires so long after the first of them,
-- by the server's clock. Workers that sleep until it ends wait for the marker in `open`: that a limit was lifted before.
local State = require('state')

-- A queue of which any job may start.
local NO_LIMITS = { paused = false, concurrency = 1 / 0, max = false, duration_ms = 0 }

-- The queue's settings, of which most have none. A worker's own limiter: starts a window (0 = no limit), ms of a window (0 = as the queue says).
local function load_limits(queue, limiter_max, limiter_ms)
  if queue.unlimited == 1 and limiter_max == 0 then
    queue.limits = NO_LIMITS
    return
  end
  local paused, concurrency, max, duration_ms
  if queue.unlimited == 0 then
    local settings = redis.call('HMGET', queue.base .. 'meta', 'paused', 'concurrency', 'max', 'duration')
    paused, concurrency, max, duration_ms = settings[1], settings[2], settings[3], settings[4]
    if not (paused or concurrency or max) then queue.unlimited = 1 end
  end
  queue.limits = {
    paused = paused,
    concurrency = tonumber(concurrency) or math.huge,
    -- the queue's number of starts comes before the worker's, but the worker's window before the queue's
    max = tonumber(max) or (limiter_max > 0 and limiter_max),
    duration_ms = limiter_ms > 0 and limiter_ms or math.abs(tonumber(duration_ms) or 0),
  }
end

-- The settings are about to limit starts: they are read from now on.
local function settings_change(queue)
  if queue.unlimited == 0 then return end
  queue.unlimited = 0
  State.save_state(queue)
end

-- Jobs that may become active beside those that are.
local function free_places(queue)
  if queue.limits == NO_LIMITS then return NO_LIMITS.concurrency end
  return math.max(math.ceil(queue.limits.concurrency - queue.active), 0)
end

-- Time after which the window is over, in ms; 0 when there is none.
local function window_left(queue)
  local left = redis.call('PTTL', queue.base .. 'limiter')
  -- the server drops a key in the millisecond after its last one
  return left < 0 and 0 or left + 1
end

-- Somebody is about to sleep until the window is over: a marker from before says nothing any more.
local function rest_of_window(queue)
  redis.call('UNLINK', queue.base .. 'open')
  return window_left(queue)
end

local function count_starts(queue, starts)
  if starts > 0 and redis.call('INCRBY', queue.base .. 'limiter', starts) == starts then
    redis.call('PEXPIRE', queue.base .. 'limiter', State.whole(queue.limits.duration_ms))
  end
end

-- Starts that the window has room for; a limit below one is a limit of one.
local function room_in_window(queue)
  local limits = queue.limits
  if not limits.max then return math.huge end
  local count = tonumber(redis.call('GET', queue.base .. 'limiter') or 0) or 0
  if count < limits.max then return math.ceil(limits.max - count) end
  return window_left(queue) > 0 and 0 or math.max(math.ceil(limits.max), 1)
end

return {
  NO_LIMITS = NO_LIMITS,
  load_limits = load_limits,
  settings_change = settings_change,
  free_places = free_places,
  window_left = window_left,
  rest_of_window = rest_of_window,
  count_starts = count_starts,
  room_in_window = room_in_window,
}
