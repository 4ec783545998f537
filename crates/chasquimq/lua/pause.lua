-- pause: the queue's persistent flag that stops every worker's fetching.
-- KEYS    base (also: state meta events trims wake)
-- ARGV    now_ms (epoch ms), paused (1|0)
-- RETURNS 0
-- ERRORS  none      EVENTS paused, resumed      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#pause, #resume
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, paused = tonumber(ARGV[1]), ARGV[2]

-- @include lib/state
-- @include lib/events
-- @include lib/line

if paused == '1' then
  redis.call('HSET', base .. 'meta', 'paused', 1)
  emit(1, { 'E', 'paused' })
else
  redis.call('HDEL', base .. 'meta', 'paused')
  emit(1, { 'E', 'resumed' })
  wake()
end
flush_events(now_ms)
return 0
