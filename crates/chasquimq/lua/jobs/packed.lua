-- packed: MessagePack put together by hand, for what nearly every step writes: a call of cmsgpack.pack costs as much as a command, and the tables
-- that it is given as much again.

local function text(value)
  local n = #value
  if n < 32 then return string.char(160 + n) .. value end
  if n < 256 then return string.char(217, n) .. value end
  return cmsgpack.pack(value)
end

-- A time in ms: a whole number of eight bytes.
local function time(ms)
  return struct.pack('>BI8', 207, ms)
end

return {
  text = text,
  time = time,
}
