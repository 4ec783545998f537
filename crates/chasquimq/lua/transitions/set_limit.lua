-- set_limit: no job moves. Sets or lifts a limit of the whole queue. Workers that sleep because of it look again.
-- KEYS    base (also: state meta prioritized limiter open wake)
-- ARGV    what (concurrency | rate | window | length), value (jobs | starts a window | ms without a start | jobs; '' = lift), duration_ms (of a rate)
-- RETURNS number of settings, or windows, that came or went
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#setGlobalConcurrency, #setGlobalRateLimit, #rateLimit, #removeRateLimitKey (differs: sleepers wake); the length is ours
-- FLAGS   allow-oom
local Limits = require('limits')
local State = require('state')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local what, value, duration_ms = args[1], args[2], args[3]
  -- more starts than any limit allows
  local USED_UP = '9007199254740991'

  local queue = State.open(base)

  if what == 'length' then
    queue.max_length = tonumber(value) or 0
    State.save_state(queue)
    return value == '' and redis.call('HDEL', base .. 'meta', 'maxLength') or redis.call('HSET', base .. 'meta', 'maxLength', value)
  end
  if what == 'window' and value ~= '' then
    redis.call('SET', base .. 'limiter', USED_UP, 'PX', value)
    redis.call('UNLINK', base .. 'open')
    return 1
  end
  if value ~= '' and what ~= 'window' then Limits.settings_change(queue) end
  local was_limited, changed = redis.call('EXISTS', base .. 'limiter') == 1, nil
  if what == 'window' then
    changed = redis.call('DEL', base .. 'limiter')
  elseif what == 'concurrency' then
    changed = value == '' and redis.call('HDEL', base .. 'meta', 'concurrency')
      or redis.call('HSET', base .. 'meta', 'concurrency', value)
  else
    changed = value == '' and redis.call('HDEL', base .. 'meta', 'max', 'duration')
      or redis.call('HSET', base .. 'meta', 'max', value, 'duration', duration_ms)
  end
  if was_limited and what ~= 'concurrency' then redis.call('ZADD', base .. 'open', 0, '0') end
  WaitingList.wake_for_work(queue)
  return changed
end
