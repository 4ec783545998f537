-- add_and_step: new -> active: adds one job, as add_frames or add does, and takes the step of a worker that waits, in one call. Who adds knows that the
-- worker waits, and gets what it takes.
-- KEYS    base (also: as add_frames, add and step)
-- ARGV    asked (as step, without outcomes), is_record (1: the job has a record, and starts at once; 0: it is a frame), then as add, or add_frames
-- RETURNS {reply of the add, which may be {-12, n, length, max_length}, reply of step}; without the latter nothing was added
-- ERRORS  -12 full      EVENTS added, waiting, active      COST O(1), O(log n) for a record
-- SOURCE  BullMQ 6.7 Queue#add, Worker (differs: one call)
local State = require('state')
local WaitingList = require('waiting_list')
local add = require('add')
local add_frames = require('add_frames')
local step = require('step')

return function(keys, args)
  local base = keys[1]
  local asked, is_record = args[1], args[2] == '1'

  local worker = { asked = asked }
  local added = (is_record and add or add_frames)(keys, { unpack(args, 3) }, worker)
  if added[1] < 0 then return { added } end
  if worker.reply then return { added, worker.reply } end

  local ok, stepped = pcall(step, keys, { asked })
  -- what is left waiting, a step tells by itself
  if not ok then
    WaitingList.wake({ base = base })
    error(stepped)
  end
  if #stepped[2] == 0 then WaitingList.wake_for_work(State.open(base)) end
  return { added, stepped }
end
