-- publish_event: no change. Tells an event of the user's own, once however often it is sent.
-- KEYS    base (also: state events trims memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, event (MessagePack: {E, name, field, value, ...}), max_events (that the log then holds)
-- RETURNS 0
-- ERRORS  none      EVENTS the one given      COST O(1)
-- SOURCE  BullMQ 6.7 QueueEventsProducer#publishEvent
local Events = require('events')
local Memo = require('memo')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local event, max_events = cmsgpack.unpack(args[5]), tonumber(args[6])

  local queue, known = Memo.open(base, client, slot, number)

  if known then return known end
  Events.emit(queue, 1, event)
  local own_max = queue.max_events
  queue.max_events = max_events
  Events.flush_events(queue, now_ms)
  queue.max_events = own_max
  State.save_state(queue)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
