-- configure: no job moves. Writes what a queue says of itself, and the cap of its event log.
-- KEYS    base (also: state meta)
-- ARGV    version, max_events (events)
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue constructor
local base = KEYS[1]
local version, max_events = ARGV[1], tonumber(ARGV[2])

-- @include lib/state

redis.call('HSET', base .. 'meta', 'version', version, 'opts.maxLenEvents', whole(max_events))
S.max_events = max_events
save_state()
return 0
