-- publish_event: no change. Tells an event of the user's own, once however often it is sent.
-- KEYS    base (also: state events trims memo:<client>:<lane>)
-- ARGV    now_ms (epoch ms), client, lane, number, event (MessagePack: {E, name, field, value, ...}), max_events (that the log then holds)
-- RETURNS 0
-- ERRORS  none      EVENTS the one given      COST O(1)
-- SOURCE  BullMQ 6.7 QueueEventsProducer#publishEvent
local base = KEYS[1]
local now_ms, client, lane, number = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local event, max_events = cmsgpack.unpack(ARGV[5]), tonumber(ARGV[6])

-- @include lib/memo
-- @include lib/state
-- @include lib/events

local known = recall(client, lane, number)
if known then return known end
emit(1, event)
local own_max = S.max_events
S.max_events = max_events
flush_events(now_ms)
S.max_events = own_max
save_state()
remember(client, lane, number, 0)
return 0
