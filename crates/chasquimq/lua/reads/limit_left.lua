-- limit_left: no change. How long the window of the rate limit still lasts.
-- KEYS    base (also: meta limiter)
-- ARGV    max (starts; '' = the queue's own limit, if it has one)
-- RETURNS ms, 0 while fewer than max have started; without a max: ms, -2 no window, -1 a window without end
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#getRateLimitTtl
-- FLAGS   no-writes

return function(keys, args)
  local base = keys[1]
  local max = args[1]

  local most = tonumber(max) or tonumber(redis.call('HGET', base .. 'meta', 'max'))
  local left = redis.call('PTTL', base .. 'limiter')
  if not most then return left end
  if tonumber(redis.call('GET', base .. 'limiter') or 0) < most then return 0 end
  return math.max(left, 0)
end
