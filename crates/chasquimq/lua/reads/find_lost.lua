-- find_lost: no change but the mark of a scan, whose first step mends what keys that were lost have left (states/mend). Active jobs of workers whose lease
-- ran out, or of one worker; a bounded step a call. What is found goes to recover_stalled.
-- KEYS    base (also: stalled state takes log front holes gone jobs active completed runs failed delayed delays prioritized waiting-children expiring wake
--         lease:<owner> memo:<owner>:<slot>)
-- ARGV    interval_ms (at the first step of a scan, of which there is one an interval for the whole queue; 0 = go on, or always), scan (a name
--         that no other scan has: its first step may be sent again), owner ('' = all whose lease ran out), cursor ('' at first)
-- RETURNS {cursor ('' = done), frames, records (states/active), {owner, slots (step/step_memo; 0: nobody knows), ...}, whose (place in that list of the
--         owner of each frame, then of each record), in how many ms the next job expires (not there: none
--         does), which is for fail_expired then}; of one worker all are counted, and it knows its slots itself
-- ERRORS  none      EVENTS none      COST O(500 records), or of one worker O(16 frames)
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, one scan is enough, and it goes in steps)
-- FLAGS   allow-oom
local Active = require('active')
local Expiry = require('expiry')
local Mend = require('mend')
local State = require('state')
local StepMemo = require('step_memo')
local WaitingList = require('waiting_list')

-- Whether this scan is the one of the interval: it begins now, or began in a call whose answer was lost.
local function is_turn_of(base, scan, interval_ms)
  -- somewhat less than an interval: the scan that a worker makes one interval after its last must not come too early for it
  return redis.call('SET', base .. 'stalled', scan, 'PX', math.max(math.floor(0.75 * interval_ms), 1), 'NX')
    or redis.call('GET', base .. 'stalled') == scan
end

return function(keys, args)
  local base = keys[1]
  local interval_ms, scan, owner, cursor = tonumber(args[1]), args[2], args[3], args[4]

  local queue = State.open(base)
  -- what has expired is for the one whose turn it is
  if interval_ms > 0 and not is_turn_of(base, scan, interval_ms) then
    local left_ms = Expiry.left_ms(queue)
    return { '', {}, {}, {}, {}, left_ms and math.max(left_ms, 1) }
  end

  if interval_ms > 0 then Mend.run(queue) end
  local owners, places, whose = {}, {}, {}

  local function is_lost(other)
    if owner ~= '' then return other == owner end
    return not Active.is_alive(queue, other)
  end

  -- asked once of each frame and each record, in the order of the reply
  local function concerns(other)
    if not is_lost(other) then return false end
    if not places[other] then
      WaitingList.append(owners, other, owner == '' and StepMemo.slots_of(base, other) or 0)
      places[other] = #owners / 2
    end
    whose[#whose + 1] = places[other]
    return true
  end

  -- how many they are must be known by whoever compares them with what a worker holds
  local found = Active.walk(queue, cursor, concerns, owner ~= '')
  WaitingList.append(found, owners, whose, interval_ms > 0 and Expiry.left_ms(queue) or nil)
  return found
end
