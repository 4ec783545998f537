-- remove_scheduler: a scheduler -> nothing, with its next iteration if that is delayed.
-- KEYS    base (also: state jobs vitals traces logged delayed schedulers scheduler events trims logs:<id> de:<id>)
-- ARGV    now_ms (epoch ms), id
-- RETURNS 1 removed | 0 there was none
-- ERRORS  none      EVENTS removed      COST O(log n)
-- SOURCE  BullMQ 6.7 Queue#removeJobScheduler
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id = tonumber(ARGV[1]), ARGV[2]

-- @include lib/state
-- @include lib/events
-- @include lib/records

local latest = redis.call('ZSCORE', base .. 'schedulers', id)
if not latest then return 0 end
redis.call('ZREM', base .. 'schedulers', id)
redis.call('HDEL', base .. 'scheduler', id)
local iteration = 'repeat:' .. id .. ':' .. whole(tonumber(latest))
if redis.call('ZREM', base .. 'delayed', iteration) == 1 then
  drop_records({ iteration })
  emit_job('removed', iteration, 'delayed')
end
flush_events(now_ms)
return 1
