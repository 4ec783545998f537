-- pause: the queue's persistent flag that stops every worker's fetching. Set and told once, however often the call is sent.
-- KEYS    base (also: state meta events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, paused (1|0)
-- RETURNS 0
-- ERRORS  none      EVENTS paused, resumed      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#pause, #resume
-- FLAGS   allow-oom
local Events = require('events')
local Limits = require('limits')
local Memo = require('memo')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, paused = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

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
  Memo.remember(base, client, slot, number, 0)
  return 0
end
