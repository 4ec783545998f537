-- configure: no job moves. Writes what a queue says of itself, and the cap of its event log.
-- KEYS    base (also: state meta)
-- ARGV    version, max_events (events)
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Queue constructor
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local version, max_events = args[1], tonumber(args[2])

  local queue = State.open(base)

  redis.call('HSET', base .. 'meta', 'version', version, 'opts.maxLenEvents', State.whole(max_events))
  queue.max_events = max_events
  State.save_state(queue)
  return 0
end
