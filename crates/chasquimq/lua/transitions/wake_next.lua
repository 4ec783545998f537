-- wake_next: no change. A worker that heard a marker and has no use for it wakes another one.
-- KEYS    base (also: wake open)
-- ARGV    marker (wake | open)
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  ours: a marker is one worker's, and a full memory must not lose it
-- FLAGS   allow-oom

return function(keys, args)
  local base = keys[1]
  local marker = args[1]

  redis.call('ZADD', base .. marker, 0, '0')
  return 0
end
