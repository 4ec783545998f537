-- find_lost: no change but the mark of a scan. Active jobs of workers whose lease ran out, or of one worker; a bounded step a call. What is
-- found goes to recover_stalled.
-- KEYS    base (also: stalled takes log active lease:<owner>)
-- ARGV    interval_ms (at the first step of a scan, of which there is one an interval for the whole queue; 0 = go on, or always), owner
--         ('' = all whose lease ran out), cursor ('' at first)
-- RETURNS {cursor ('' = done), frames, records} (states/active); of one worker all are counted
-- ERRORS  none      EVENTS none      COST O(500 records), or of one worker O(16 frames)
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, one scan is enough, and it goes in steps)
-- FLAGS   allow-oom
local Active = require('active')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local interval_ms, owner, cursor = tonumber(args[1]), args[2], args[3]

  -- somewhat less than an interval: the scan that a worker makes one interval after its last must not come too early for it
  if interval_ms > 0 and not redis.call('SET', base .. 'stalled', 1, 'PX', math.max(math.floor(0.75 * interval_ms), 1), 'NX') then
    return { '', {}, {} }
  end

  local queue = State.open(base)

  local function concerns(other)
    if owner ~= '' then return other == owner end
    return not Active.is_alive(queue, other)
  end

  -- how many they are must be known by whoever compares them with what a worker holds
  return Active.walk(queue, cursor, concerns, owner ~= '')
end
