-- memo: what a client's numbered call was answered, kept a while, so that a call sent again after a lost reply changes nothing.
-- A client uses a slot for one call at a time; a slot (a key of its own) remembers its last call only.
local State = require('state')

-- The number stands before the answer, as a double: most calls read no more.
local MEMO_TTL_MS, NUMBER_BYTES = 3600000, 8

local function key_of(base, client, slot)
  return base .. 'memo:' .. client .. ':' .. slot
end

-- The queue, and what the call of this number was answered, if it was carried out before.
local function open(base, client, slot, number)
  local read = redis.call('MGET', base .. 'state', key_of(base, client, slot))
  local queue, raw = State.open(base, nil, read[1]), read[2]
  if not raw or #raw <= NUMBER_BYTES then return queue, nil end
  -- a lower number is an old copy that arrives late: it was answered, and nobody reads this answer
  return queue, struct.unpack('<d', raw) >= number and cmsgpack.unpack(raw:sub(NUMBER_BYTES + 1)) or nil
end

local function remember(base, client, slot, number, reply)
  redis.call('SET', key_of(base, client, slot), struct.pack('<d', number) .. cmsgpack.pack(reply), 'PX', MEMO_TTL_MS)
end

return {
  open = open,
  remember = remember,
}
