-- count_frames: no change. How many jobs of frames are active.
-- KEYS    base (also: state takes log)
-- ARGV    firsts (MessagePack array)
-- RETURNS {jobs (0: nobody holds the frame any more), ...}
-- ERRORS  none      EVENTS none      COST O(frames)
-- SOURCE  none: BullMQ has no frames
-- FLAGS   no-writes
local Active = require('active')
local State = require('state')

local function count_active(queue, first)
  local raw = redis.call('HGET', queue.base .. 'takes', State.whole(first))
  if not raw then return 0 end
  local _, holder = Active.read_frame_holder(first, raw)
  if holder[2] == '' then return (Active.held_frame(queue, first, holder)) end
  local _, active = holder[2]:gsub('1', '')
  return active
end

return function(keys, args)
  local base = keys[1]
  local firsts = cmsgpack.unpack(args[1])

  local queue, counts = State.open(base), {}
  for i, first in ipairs(firsts) do counts[i] = count_active(queue, first) end
  return counts
end
