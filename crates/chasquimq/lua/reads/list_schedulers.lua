-- list_schedulers: no change. Some schedulers by their ids.
-- KEYS    base (also: schedulers scheduler)
-- ARGV    ids (MessagePack array)
-- RETURNS {id, slot of its latest iteration, stored, ...} of those that exist, in that order; stored as rules/schedulers says
-- ERRORS  none      EVENTS none      COST O(ids)
-- SOURCE  BullMQ 6.7 Queue#getJobScheduler, #getJobSchedulers (differs: the caller reads the ids by rank, and sends some at a time)
-- FLAGS   no-writes

return function(keys, args)
  local base = keys[1]
  local ids = cmsgpack.unpack(args[1])

  local out = {}
  for from = 1, #ids, 1000 do
    local to = math.min(from + 999, #ids)
    local slots = redis.call('ZMSCORE', base .. 'schedulers', unpack(ids, from, to))
    for i, raw in ipairs(redis.call('HMGET', base .. 'scheduler', unpack(ids, from, to))) do
      if raw and slots[i] then
        local n = #out
        out[n + 1], out[n + 2], out[n + 3] = ids[from + i - 1], slots[i], raw
      end
    end
  end
  return out
end
