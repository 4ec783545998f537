-- memo: what a client's numbered call was answered, kept a while, so that a call sent again after a lost reply changes nothing.
-- A client uses a slot for one call at a time; a slot (a key of its own) remembers its last call only.
local State = require('state')

-- The number stands before the answer, as a double: most calls read no more. The time is a text: to make one of a number costs as much as to store it.
local MEMO_TTL_MS, NUMBER_BYTES = '3600000', 8

local function key_of(base, client, slot)
  return base .. 'memo:' .. client .. ':' .. slot
end

-- Whether what a slot holds tells that the call of this number was carried out.
local function is_known(raw, number)
  -- a lower number is an old copy that arrives late: it was answered, and nobody reads this answer
  return raw and #raw > NUMBER_BYTES and struct.unpack('<d', raw) >= number
end

-- The answer as it was remembered, if the slot remembers it.
local function answer_in(raw, number)
  return is_known(raw, number) and raw:sub(NUMBER_BYTES + 1) or nil
end

-- What is read at the start of a call that looks at more keys: the queue's state, the answer as it was remembered, and what those keys hold.
local function read_beside(base, slot_key, number, ...)
  local read = redis.call('MGET', base .. 'state', slot_key, ...)
  return read[1], answer_in(read[2], number), read[3], read[4], read[5], read[6]
end

-- The queue, and what the call of this number was answered, if it was carried out before.
local function open(base, client, slot, number)
  local raw, answer = read_beside(base, key_of(base, client, slot), number)
  return State.open(base, nil, raw), answer and cmsgpack.unpack(answer)
end

-- packed: the number as a double, and the answer.
local function remember_packed(slot_key, packed)
  redis.call('SET', slot_key, packed, 'PX', MEMO_TTL_MS)
end

local function remember(base, client, slot, number, reply)
  remember_packed(key_of(base, client, slot), struct.pack('<d', number) .. cmsgpack.pack(reply))
end

return {
  is_known = is_known,
  open = open,
  key_of = key_of,
  read_beside = read_beside,
  remember = remember,
  remember_packed = remember_packed,
}
