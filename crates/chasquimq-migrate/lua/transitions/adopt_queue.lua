-- adopt_queue: no job moves. New jobs get numbers above those that BullMQ gave; the first time, BullMQ's settings of the queue, what is left of
-- the window of its rate limit, and its metrics, become ours where we have none. Settings that were given back to BullMQ are BullMQ's alone.
-- KEYS    base (also: state meta prioritized limiter metrics:<state> wake; of BullMQ: id meta limiter metrics:<state>)
-- ARGV    source (migrate/bull), gap (numbers left free, for jobs that BullMQ's producers still add)
-- RETURNS {1 the first time, else 0, the last number, setting, value, ... that were taken over}
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  none: moving from BullMQ
local Bull = require('bull')
local Limits = require('limits')
local State = require('state')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local source, gap = args[1], tonumber(args[2])
  local SETTINGS, METRICS = { 'paused', 'concurrency', 'max', 'duration' }, { 'metrics:completed', 'metrics:failed' }

  Bull.require_types(source)
  local queue = State.open(base)
  local last = Bull.last_number(source)
  local mark = redis.call('HGET', source .. 'meta', Bull.MARK)
  local is_first = mark ~= Bull.ADOPTED
  if is_first then last = last + gap end
  queue.id = math.max(queue.id, last)
  State.save_state(queue)
  local reply = { is_first and 1 or 0, queue.id }
  if not is_first then return reply end

  local function is_number(text)
    local number = tonumber(text or nil)
    return number ~= nil and number - number == 0 and number >= 0
  end

  local dropped = mark == Bull.RETURNED and redis.call('HDEL', base .. 'meta', unpack(SETTINGS)) or 0
  local found = redis.call('HMGET', source .. 'meta', unpack(SETTINGS))
  for i, name in ipairs(SETTINGS) do
    local is_sound = name == 'paused' or is_number(found[i])
    if found[i] and is_sound and redis.call('HSETNX', base .. 'meta', name, found[i]) == 1 then
      reply[#reply + 1] = name
      reply[#reply + 1] = found[i]
    end
  end
  if #reply > 2 or dropped > 0 then Limits.settings_change(queue) end
  if dropped > 0 then WaitingList.wake_for_work(queue) end

  local left = redis.call('PTTL', source .. 'limiter')
  local starts = left > 0 and redis.call('GET', source .. 'limiter')
  if is_number(starts) and redis.call('EXISTS', base .. 'limiter') == 0 then redis.call('SET', base .. 'limiter', starts, 'PX', left) end
  for _, name in ipairs(METRICS) do
    for _, key in ipairs({ name, name .. ':data' }) do
      if redis.call('EXISTS', source .. key) == 1 and redis.call('EXISTS', base .. key) == 0 then redis.call('RENAME', source .. key, base .. key) end
    end
  end
  redis.call('HSET', source .. 'meta', Bull.MARK, Bull.ADOPTED)
  return reply
end
