-- return_queue: no job moves. New jobs of BullMQ's get numbers above ours, and the settings that both know, what is left of the window of the rate
-- limit, and the metrics, become BullMQ's. What adopt_queue does, the other way round.
-- KEYS    base (also: state meta limiter metrics:<state>; of BullMQ: id meta limiter metrics:<state>)
-- ARGV    source (lib/bull)
-- RETURNS {the last number, setting, value, ... that BullMQ has now}
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  none: moving to BullMQ
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local source = args[1]
  local SETTINGS, METRICS = { 'paused', 'concurrency', 'max', 'duration' }, { 'metrics:completed', 'metrics:failed' }

  local queue = State.open(base)
  local last = math.max(queue.id, tonumber(redis.call('GET', source .. 'id') or nil) or 0)
  redis.call('SET', source .. 'id', State.whole(last))
  local reply, found = { last }, redis.call('HMGET', base .. 'meta', unpack(SETTINGS))
  for i, name in ipairs(SETTINGS) do
    if found[i] then
      redis.call('HSET', source .. 'meta', name, found[i])
      reply[#reply + 1] = name
      reply[#reply + 1] = found[i]
    else
      redis.call('HDEL', source .. 'meta', name)
    end
  end
  redis.call('HDEL', source .. 'meta', 'chasquimq')

  local left = redis.call('PTTL', base .. 'limiter')
  if left > 0 and redis.call('EXISTS', source .. 'limiter') == 0 then
    redis.call('SET', source .. 'limiter', redis.call('GET', base .. 'limiter'), 'PX', left)
  end
  for _, name in ipairs(METRICS) do
    for _, key in ipairs({ name, name .. ':data' }) do
      if redis.call('EXISTS', base .. key) == 1 and redis.call('EXISTS', source .. key) == 0 then redis.call('RENAME', base .. key, source .. key) end
    end
  end
  return reply
end
