-- lease: a key that lives as long as its worker is known to. A step gives the worker another lease_ms, unless a step did so a moment ago: the key
-- holds the second of the server's clock until which steps leave it as it is. Others put 1 there, which is long over; that of a job taken manually: states/lock.
local MOST_UNTOUCHED = 0.05 -- of a lease

local function key_of(base, owner)
  return base .. 'lease:' .. owner
end

-- left: what the key holds, or false; seconds: the server's clock, a text. Seconds have ten digits, so that texts compare as they do.
local function renew(key, left, lease_ms, seconds)
  if left and left > seconds then return end
  redis.call('SET', key, seconds + math.floor(MOST_UNTOUCHED * lease_ms / 1000), 'PX', lease_ms)
end

return {
  key_of = key_of,
  renew = renew,
}
