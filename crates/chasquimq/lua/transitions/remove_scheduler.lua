-- remove_scheduler: a scheduler -> nothing, with its next iteration if that is delayed.
-- KEYS    base (also: state jobs vitals traces logged delayed schedulers scheduler events trims logs:<id> de:<id>)
-- ARGV    now_ms (epoch ms), id
-- RETURNS 1 removed | 0 there was none
-- ERRORS  none      EVENTS removed      COST O(log n)
-- SOURCE  BullMQ 6.7 Queue#removeJobScheduler
-- FLAGS   allow-oom
local Events = require('events')
local Records = require('records')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, id = tonumber(args[1]), args[2]

  local queue = State.open(base)

  local latest = redis.call('ZSCORE', base .. 'schedulers', id)
  if not latest then return 0 end
  redis.call('ZREM', base .. 'schedulers', id)
  redis.call('HDEL', base .. 'scheduler', id)
  local iteration = 'repeat:' .. id .. ':' .. State.whole(tonumber(latest))
  if redis.call('ZREM', base .. 'delayed', iteration) == 1 then
    Records.drop_records(queue, { iteration })
    Events.emit_job(queue, 'removed', iteration, 'delayed')
  end
  Events.flush_events(queue, now_ms)
  return 1
end
