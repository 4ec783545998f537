-- names: what users call a queue, <prefix>:<queue>, and what all its keys start with, its base (src/keys.rs).

-- A name that brings a hash tag keeps it: the queue then lies in the slot in which BullMQ has it.
local function base_of(name)
  local tag = name:match('{(.-)}')
  return tag and tag ~= '' and name .. ':chasqui:' or '{' .. name .. '}:'
end

local function name_of(base) return base:sub(-9) == ':chasqui:' and base:sub(1, -10) or base:sub(2, -3) end

return {
  base_of = base_of,
  name_of = name_of,
}
