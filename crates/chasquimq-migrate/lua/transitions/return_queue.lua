-- return_queue: no job moves. New jobs of BullMQ's get numbers above ours, and what is left of the window of the rate limit, and the metrics, become
-- BullMQ's; the first time, the settings that both know, too. What adopt_queue does, the other way round.
-- KEYS    base (also: state meta limiter metrics:<state>; of BullMQ: id meta limiter metrics:<state> wait paused prioritized marker)
-- ARGV    source (migrate/bull), gap (numbers left free, for jobs that our producers still add)
-- RETURNS {the last number, setting, value, ... that BullMQ has now}
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  none: moving to BullMQ
local Bull = require('bull')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local source, gap = args[1], tonumber(args[2])
  local SETTINGS, METRICS = { 'paused', 'concurrency', 'max', 'duration' }, { 'metrics:completed', 'metrics:failed' }

  Bull.require_types(source)
  local queue = State.open(base)
  local last = Bull.last_number(source)
  -- where both gave one number, BullMQ would take its new job for ours that came back, and drop it. Half a gap is enough to go on with: who
  -- moves back in several runs leaves one.
  if last < queue.id + gap / 2 then
    queue.id = math.max(queue.id, last)
    last = queue.id + gap
    State.save_state(queue)
    redis.call('SET', source .. 'id', State.whole(last))
  end
  local reply, mark = { last }, redis.call('HGET', source .. 'meta', Bull.MARK)
  -- whoever moves back in several runs may have set them there since
  local found = mark ~= Bull.RETURNED and redis.call('HMGET', base .. 'meta', unpack(SETTINGS)) or {}
  for i, name in ipairs(SETTINGS) do
    if found[i] then
      redis.call('HSET', source .. 'meta', name, found[i])
      reply[#reply + 1] = name
      reply[#reply + 1] = found[i]
    elseif mark == Bull.ADOPTED then
      redis.call('HDEL', source .. 'meta', name)
    end
  end
  redis.call('HSET', source .. 'meta', Bull.MARK, Bull.RETURNED)
  -- it may be paused now, and not have been, or the other way round
  local list = Bull.waiting_list_of(source)
  local other = source .. (list == 'wait' and 'paused' or 'wait')
  if redis.call('EXISTS', other) == 1 and redis.call('EXISTS', source .. list) == 0 then redis.call('RENAME', other, source .. list) end
  local is_paused = redis.call('HEXISTS', source .. 'meta', 'paused') == 1
  if not is_paused and redis.call('EXISTS', source .. 'wait', source .. 'prioritized') > 0 then redis.call('ZADD', source .. 'marker', 0, '0') end

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
