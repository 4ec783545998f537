-- remove_scheduler: a scheduler -> nothing, with its next iteration if that is delayed.
-- KEYS    base (also: state jobs vitals traces logged delayed schedulers scheduler scheduler-runs events trims logs:<id> de:<id>
--         memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id
-- RETURNS 1 removed | 0 there was none
-- ERRORS  none      EVENTS removed      COST O(log n)
-- SOURCE  BullMQ 6.7 Queue#removeJobScheduler
-- FLAGS   allow-oom
local Events = require('events')
local Memo = require('memo')
local Records = require('records')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local latest = redis.call('ZSCORE', base .. 'schedulers', id)
  if not latest then return 0 end
  redis.call('ZREM', base .. 'schedulers', id)
  redis.call('HDEL', base .. 'scheduler', id)
  redis.call('HDEL', base .. 'scheduler-runs', id)
  local iteration = 'repeat:' .. id .. ':' .. State.whole(tonumber(latest))
  if redis.call('ZREM', base .. 'delayed', iteration) == 1 then
    Records.drop_records(queue, { iteration })
    Events.emit_job(queue, 'removed', iteration, 'delayed')
  end
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 1)
  return 1
end
