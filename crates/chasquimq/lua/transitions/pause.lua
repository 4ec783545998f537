-- pause: the queue's persistent flag that stops every worker's fetching.
-- KEYS    base (also: state meta events trims wake)
-- ARGV    now_ms (epoch ms), paused (1|0)
-- RETURNS 0
-- ERRORS  none      EVENTS paused, resumed      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#pause, #resume
-- FLAGS   allow-oom
local Events = require('events')
local Limits = require('limits')
local State = require('state')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, paused = tonumber(args[1]), args[2]

  local queue = State.open(base)

  if paused == '1' then
    Limits.settings_change(queue)
    redis.call('HSET', base .. 'meta', 'paused', 1)
    Events.emit(queue, 1, { 'E', 'paused' })
  else
    redis.call('HDEL', base .. 'meta', 'paused')
    Events.emit(queue, 1, { 'E', 'resumed' })
    WaitingList.wake(queue)
  end
  Events.flush_events(queue, now_ms)
  return 0
end
