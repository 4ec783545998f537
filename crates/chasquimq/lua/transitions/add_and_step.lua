-- add_and_step: new -> active: adds what add_frames adds, and takes the step of a worker that waits, in one call. Who adds knows that the worker waits, and
-- gets what it takes.
-- KEYS    base (also: as add_frames and step)
-- ARGV    asked (as step, without outcomes), owner, wait (number of the step that stands behind the worker's wait: it is over; 0 = it is over by now), then
--         as add_frames
-- RETURNS {reply of add_frames, which may be {-12, n, length, max_length}, reply of step}; without the latter nothing was added, or the step behind the
--         wait was carried out before
-- ERRORS  -12 full      EVENTS added, waiting, active      COST O(frames + taken)
-- SOURCE  BullMQ 6.7 Queue#add, Worker (differs: one call)
local IdleWait = require('idle_wait')
local WaitingList = require('waiting_list')
local add_frames = require('add_frames')
local step = require('step')

return function(keys, args)
  local base = keys[1]
  local asked, owner, wait = args[1], args[2], tonumber(args[3])

  local worker = { asked = asked, owner = owner, wait = wait }
  local added = add_frames(keys, { unpack(args, 4) }, worker)
  if added[1] < 0 then return { added } end
  if worker.reply then return { added, worker.reply } end

  if wait > 0 and not IdleWait.end_step(base, owner, wait) then
    WaitingList.wake({ base = base })
    return { added }
  end
  local ok, stepped = pcall(step, keys, { asked })
  -- what is left waiting, a step tells by itself
  if not ok or #stepped[2] == 0 then WaitingList.wake({ base = base }) end
  if not ok then error(stepped) end
  return { added, stepped }
end
