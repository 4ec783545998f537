-- adopt_dedup: no job moves. Deduplication ids of BullMQ's, whose jobs are gone, are ours for the time they have left.
-- KEYS    base (also: de:<id>; of BullMQ: de:<id>)
-- ARGV    source (migrate/bull), ids (MessagePack array)
-- RETURNS ids that were moved
-- ERRORS  none      EVENTS none      COST O(ids)
-- SOURCE  none: moving from BullMQ
local Bull = require('bull')

return function(keys, args)
  local base = keys[1]
  local source, ids = args[1], Bull.read_texts(args[2])

  local moved = 0
  for _, id in ipairs(ids) do
    local key = source .. 'de:' .. id
    local owner, left = Bull.owner_of(source, id), redis.call('PTTL', key)
    -- one that has a job there goes with it; one without a time has no meaning without its job
    if owner and left > 0 and redis.call('EXISTS', source .. owner) == 0 then
      redis.call('SET', base .. 'de:' .. id, owner, 'PX', left, 'NX')
      redis.call('DEL', key)
      moved = moved + 1
    end
  end
  return moved
end
