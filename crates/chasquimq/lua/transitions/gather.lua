-- gather: one worker at a time holds jobs that are too few for its batch. Two that held some each could wait for each other's.
-- KEYS    base (also: meta gatherer)
-- ARGV    owner, hold_ms (it gathers for so long from now on; 0 = no more)
-- RETURNS most jobs that may be active at once, 0 = any number; -1 another worker gathers, -2 the queue is paused, so that nobody does
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  ours
-- FLAGS   allow-oom
-- gatherer: the owner. Who is gone gathers no more when the key expires.
local State = require('state')

local BEHIND_ANOTHER, PAUSED = -1, -2

return function(keys, args)
  local base = keys[1]
  local owner, hold_ms = args[1], tonumber(args[2])

  local holder = redis.call('GET', base .. 'gatherer')
  if holder and holder ~= owner then return BEHIND_ANOTHER end
  local settings = redis.call('HMGET', base .. 'meta', 'paused', 'concurrency')
  local paused, concurrency = settings[1], tonumber(settings[2])
  if hold_ms > 0 and not paused then
    redis.call('SET', base .. 'gatherer', owner, 'PX', State.whole(hold_ms))
  elseif holder then
    redis.call('DEL', base .. 'gatherer')
  end
  if paused then return PAUSED end
  return concurrency and math.max(math.ceil(math.min(concurrency, 2 ^ 31)), 1) or 0
end
