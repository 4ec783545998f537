-- memo: what a client's numbered call was answered, kept a while, so that a call sent again after a lost reply changes nothing.
-- A client uses a slot for one call at a time; a slot (a key of its own) remembers its last call only.
local MEMO_TTL_MS = 3600000

local function recall(client, slot, number)
  local raw = redis.call('GET', base .. 'memo:' .. client .. ':' .. slot)
  if not raw then return nil end
  local memo = cmsgpack.unpack(raw)
  -- a lower number is an old copy that arrives late: it was answered, and nobody reads this answer
  return memo[1] >= number and memo[2] or nil
end

local function remember(client, slot, number, reply)
  redis.call('SET', base .. 'memo:' .. client .. ':' .. slot, cmsgpack.pack({ number, reply }), 'PX', MEMO_TTL_MS)
end
