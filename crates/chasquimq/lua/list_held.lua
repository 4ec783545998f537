-- list_held: no change. Active jobs whose worker has its lease, a bounded step a call.
-- KEYS    base (also: state takes active log lease:<owner>)
-- ARGV    part (takes | active), cursor (of that part; 0 at first)
-- RETURNS {part of the next step ('' = done), its cursor, {id, ...}}
-- ERRORS  none      EVENTS none      COST O(100 frames, or 1000 records)
-- SOURCE  none
-- FLAGS   no-writes
local Frame = require('frame')
local Held = require('held')
local State = require('state')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local part, cursor = args[1], args[2]

  local queue = State.open(base)

  local ids, alive = {}, {}
  local function is_alive(owner)
    if alive[owner] == nil then alive[owner] = redis.call('EXISTS', base .. 'lease:' .. owner) == 1 end
    return alive[owner]
  end

  local page = redis.call('HSCAN', base .. part, cursor, 'COUNT', part == 'takes' and 100 or 1000)
  for i = 1, #page[2], 2 do
    local field, raw = page[2][i], page[2][i + 1]
    if part == 'active' then
      if is_alive(Stored.active(raw)[3]) then ids[#ids + 1] = field end
    else
      local first, take = Held.held_take(field, raw)
      if is_alive(take[3]) then
        local chars, brood = take[2], Frame.brood_in(take)
        if chars == '' then chars = string.rep('1', (Held.held_frame(queue, first, take))) end
        for offset = 0, #chars - 1 do
          if chars:sub(offset + 1, offset + 1) == '1' then ids[#ids + 1] = Frame.id_in(brood and brood[1], first + offset) end
        end
      end
    end
  end
  if page[1] ~= '0' then return { part, page[1], ids } end
  return { part == 'takes' and 'active' or '', '0', ids }
end
