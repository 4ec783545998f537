-- find_lost: no change but the mark of a scan. Active jobs of workers whose lease ran out, or of one worker; a bounded step a call. What is
-- found goes to rescue.
-- KEYS    base (also: stalled takes log active lease:<owner>)
-- ARGV    interval_ms (at the first step of a scan, of which there is one an interval for the whole queue; 0 = go on, or always), owner
--         ('' = all whose lease ran out), cursor ('' at first)
-- RETURNS {cursor ('' = done), frames, records}; frames: first, chars ('' = all, of nobody knows how many), started_ms, claim, what their
--         ids begin with ('' = nothing), five a frame; records: id, started_ms, claim, three a record
-- ERRORS  none      EVENTS none      COST O(500 records), or of one worker O(16 frames)
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, one scan is enough, and it goes in steps)
-- FLAGS   allow-oom
local Frame = require('frame')
local Held = require('held')
local Line = require('line')
local State = require('state')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local interval_ms, owner, cursor = tonumber(args[1]), args[2], args[3]

  -- somewhat less than an interval: the scan that a worker makes one interval after its last must not come too early for it
  if interval_ms > 0 and not redis.call('SET', base .. 'stalled', 1, 'PX', math.max(math.floor(0.75 * interval_ms), 1), 'NX') then
    return { '', {}, {} }
  end

  local queue = State.open(base)

  local alive = {}
  local function concerns(other)
    if owner ~= '' then return other == owner end
    if alive[other] == nil then alive[other] = redis.call('EXISTS', base .. 'lease:' .. other) == 1 end
    return not alive[other]
  end

  local frames, records = {}, {}

  local function look_at_takes(list)
    for i = 1, #list, 2 do
      local first, take = Held.held_take(list[i], list[i + 1])
      if concerns(take[3]) then
        local chars, brood = take[2], Frame.brood_in(take)
        -- how many they are must be known by whoever compares them with what a worker holds
        if owner ~= '' and chars == '' then chars = string.rep('1', (Held.held_frame(queue, first, take))) end
        Line.append(frames, first, chars, take[1], Held.held_claim(take), brood and brood[1] or '')
      end
    end
  end

  local function look_at_records(list)
    for i = 1, #list, 2 do
      local active = Stored.active(list[i + 1])
      if concerns(active[3]) then Line.append(records, list[i], active[1], Held.held_claim(active)) end
    end
  end

  local phase, at = cursor:match('^(%l)(%d+)$')
  phase, at = phase or 't', at or '0'
  if phase == 't' then
    local found = redis.call('HSCAN', base .. 'takes', at, 'COUNT', owner ~= '' and 16 or 250)
    look_at_takes(found[2])
    at = found[1]
    if at == '0' then phase = 'a' end
  end
  if phase == 'a' then
    local found = redis.call('HSCAN', base .. 'active', at, 'COUNT', 500)
    look_at_records(found[2])
    at = found[1]
    if at == '0' then return { '', frames, records } end
  end
  return { phase .. at, frames, records }
end
