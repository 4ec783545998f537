-- step_memo: what is remembered of a worker's step (queue/memo): number, next_due_ms, gated, now_ms and limited_ms of the reply, and the worker's slots;
-- behind these rejected, and what was taken (step/fetched), packed.
-- Slots are how many jobs the worker runs at once. When it is gone, they tell how many of its jobs it can have started (reads/find_lost).
local Memo = require('memo')

-- The slots share a number with gated, which is 0 or 1. A step that does not tell them remembers 0, as those of 0.1.0 do.
local HEAD, KNOWN, KNOWN_BYTES = '<ddddd', '<dddd', 32
local NUMBERS, NUMBERS_BYTES = '<ddd', 24
local MOST_SLOTS = 4294967295

local function head(number, due_ms, gated, now_ms, limited_ms, slots)
  return struct.pack(HEAD, number, due_ms, gated + 2 * slots, now_ms, limited_ms)
end

-- known: what queue/memo gives. Gives due_ms, gated, now_ms, limited_ms, rejected, and what was taken.
local function read(known)
  local due_ms, gated, now_ms, limited_ms = struct.unpack(KNOWN, known)
  return due_ms, gated % 2, now_ms, limited_ms, cmsgpack.unpack(known:sub(KNOWN_BYTES + 1))
end

-- Where it is remembered.
local function key_of(base, owner)
  return Memo.key_of(base, owner, 's')
end

-- The slots of a worker; 0: nobody knows.
local function slots_of(base, owner)
  local raw = redis.call('GET', key_of(base, owner))
  if not raw or #raw < NUMBERS_BYTES then return 0 end
  local _, _, shared = struct.unpack(NUMBERS, raw)
  local slots = math.floor(shared / 2)
  return slots <= MOST_SLOTS and slots or 0
end

return {
  key_of = key_of,
  head = head,
  read = read,
  slots_of = slots_of,
}
