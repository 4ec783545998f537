-- list_schedulers: no change. Schedulers by the slot of their latest iteration, or one by its id.
-- KEYS    base (also: schedulers scheduler)
-- ARGV    id ('' = by rank), by_id (1|0), start, stop, ascending (1|0)
-- RETURNS {id, slot, stored, ...} stored as lib/schedulers says
-- ERRORS  none      EVENTS none      COST O(log n + schedulers)
-- SOURCE  BullMQ 6.7 Queue#getJobScheduler, #getJobSchedulers
local base = KEYS[1]
local id, by_id, start, stop, ascending = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local pairs_found
if by_id == '1' then
  local slot = redis.call('ZSCORE', base .. 'schedulers', id)
  pairs_found = slot and { id, slot } or {}
else
  pairs_found = redis.call(ascending == '1' and 'ZRANGE' or 'ZREVRANGE', base .. 'schedulers', start, stop, 'WITHSCORES')
end
local out = {}
for from = 1, #pairs_found, 1000 do
  local ids = {}
  for i = from, math.min(from + 999, #pairs_found), 2 do ids[#ids + 1] = pairs_found[i] end
  for i, raw in ipairs(redis.call('HMGET', base .. 'scheduler', unpack(ids))) do
    out[#out + 1] = ids[i]
    out[#out + 1] = pairs_found[from + 2 * i - 1]
    out[#out + 1] = raw
  end
end
return out
