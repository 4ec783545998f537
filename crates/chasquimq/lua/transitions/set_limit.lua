-- set_limit: no job moves. Sets or lifts a limit of the whole queue. Workers that sleep because of it look again.
-- KEYS    base (also: state meta prioritized limiter open resting waiting-workers wake memo:<client>:<slot>)
-- ARGV    client, slot, number, what (concurrency | rate | window | length),
--         value (jobs | starts a window | ms without a start | jobs; '' = lift), duration_ms (of a rate)
-- RETURNS number of settings, or windows, that came or went
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#setGlobalConcurrency, #setGlobalRateLimit, #rateLimit, #removeRateLimitKey (differs: sleepers wake); the length is ours
-- FLAGS   allow-oom
local Limits = require('limits')
local Memo = require('memo')
local State = require('state')
local WaitingList = require('waiting_list')
local WaitingWorkers = require('waiting_workers')

-- more starts than any limit allows
local USED_UP = '9007199254740991'

local function set_length(queue, value)
  queue.max_length = tonumber(value) or 0
  State.save_state(queue)
  local meta = queue.base .. 'meta'
  return value == '' and redis.call('HDEL', meta, 'maxLength') or redis.call('HSET', meta, 'maxLength', value)
end

local function begin_window(queue, ms)
  redis.call('SET', queue.base .. 'limiter', USED_UP, 'PX', ms)
  redis.call('UNLINK', queue.base .. 'open')
  return 1
end

local function set_limit(queue, what, value, duration_ms)
  local base, meta = queue.base, queue.base .. 'meta'
  if value ~= '' then Limits.settings_change(queue) end
  local was_limited, changed = redis.call('EXISTS', base .. 'limiter') == 1, nil
  if what == 'window' then
    changed = redis.call('DEL', base .. 'limiter')
  elseif what == 'concurrency' then
    changed = value == '' and redis.call('HDEL', meta, 'concurrency') or redis.call('HSET', meta, 'concurrency', value)
  else
    changed = value == '' and redis.call('HDEL', meta, 'max', 'duration')
      or redis.call('HSET', meta, 'max', value, 'duration', duration_ms)
  end
  if was_limited and what ~= 'concurrency' then
    redis.call('ZADD', base .. 'open', 0, '0')
    WaitingWorkers.tell_resting(base)
  end
  WaitingList.wake_for_work(queue)
  return changed
end

return function(keys, args)
  local base = keys[1]
  local client, slot, number = args[1], args[2], tonumber(args[3])
  local what, value, duration_ms = args[4], args[5], args[6]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local changed
  if what == 'length' then
    changed = set_length(queue, value)
  elseif what == 'window' and value ~= '' then
    changed = begin_window(queue, value)
  else
    changed = set_limit(queue, what, value, duration_ms)
  end
  Memo.remember(base, client, slot, number, changed)
  return changed
end
