-- wake_next: no change. A worker that heard of work and has no use for it wakes another one.
-- KEYS    base (also: waiting-workers resting wake open)
-- ARGV    marker (wake | open), owner (the worker, which waits no more; '' = none)
-- RETURNS 1: another one that waits was told; 0: the marker is there
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  ours: what one worker was told is lost with it, and a full memory must not lose it
-- FLAGS   allow-oom
local WaitingWorkers = require('waiting_workers')

return function(keys, args)
  local base = keys[1]
  local marker, owner = args[1], args[2]

  if marker == 'open' then
    WaitingWorkers.tell_resting(base)
  else
    WaitingWorkers.remove(base, owner)
    if WaitingWorkers.tell_one(base) then return 1 end
  end
  redis.call('ZADD', base .. marker, 0, '0')
  return 0
end
