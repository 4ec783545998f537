-- straight_add: the add that most producers make most of the time: one frame that does not lie apart, in a queue without a maximum length; and, where it is
-- one job and a worker waits for it (add_and_step), the start of that job. It does what add_frames does with any frames, with the same texts under the
-- same keys, but gathers nothing in tables; where it finds more than it knows, it gives nothing, has changed nothing, and add_frames does the add.
local EventLog = require('event_log')
local ForeignEntries = require('foreign_entries')
local PlainJobs = require('plain_jobs')
local StartOnAdd = require('start_on_add')
local State = require('state')
local WaitingList = require('waiting_list')

local NONE = {}

-- Puts the frame at the end of the log. Where the log does not take it, as another program wrote to it, gives the queue, with room in the log; saved: the
-- state that the queue is in, nil = the stored one.
local function append(base, saved, log_id, blob)
  local written = redis.pcall('XADD', base .. 'log', log_id, 'f', blob)
  if type(written) ~= 'table' then return nil end
  local queue = State.open(base, nil, saved)
  ForeignEntries.clear_end_of_log(queue, log_id, written)
  return queue
end

-- Writes a job that has started where `append` has made room in the log of this queue.
local function append_started(queue, log_id, blob, count, groups)
  local base = queue.base
  redis.call('XADD', base .. 'log', log_id, 'f', blob)
  -- what was set aside waits
  if queue.waiting > 0 then WaitingList.wake(queue) end
  EventLog.write_events(queue, count, groups, NONE)
  -- it is not stored
  queue.raw = ''
  State.save_state(queue)
end

-- raw: the state; worker: who waits, or nil; behind it what the keys hold of which step/start_on_add has told. Gives the number of the first job, packed
-- as well.
local function run(base, raw, args, worker, ...)
  local now_ms, n, names, blob = tonumber(args[1]), tonumber(args[5]), args[6], args[7]
  if #raw < State.BYTES or n < 0 then return nil end
  local id, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq, event_fresh, holes, stale, max_events, place, flows,
    max_length, unlimited, apart = struct.unpack(State.FORMAT, raw)
  -- of each job added and waiting, and perhaps active
  local count = 2 * n
  if max_length > 0 or EventLog.needs_care(event_fresh + count + 1, max_events, event_ms, now_ms) then return nil end

  local first = id + 1
  local packed = cmsgpack.pack(first)
  local groups = '\148\161A' .. packed .. string.char(n) .. names
  -- nothing else waits, and nothing limits who may start what comes
  local starts = worker and worker.memo and n == 1 and waiting == 0 and unlimited == 1 and place == 0 and flows == 0 and holes == 0 and stale == 0
    and references == 0 and StartOnAdd.start(base, first, worker, ...)
  if starts then
    active, cursor_ms, cursor_seq, count, groups = active + 1, first, 1, count + 1, groups .. '\147\161a' .. packed .. '\1'
  else
    waiting = waiting + n
  end
  event_ms, event_seq = math.max(now_ms, event_ms), now_ms > event_ms and count or event_seq + count
  local saved = struct.pack(State.FORMAT, id + n, cursor_ms, cursor_seq, waiting, active, completed, references, event_ms, event_seq,
    event_fresh + count, holes, stale, max_events, place, flows, max_length, unlimited, apart)

  -- in this order, as in add_frames
  local log_id, event_id = State.entry_id(first, n), State.entry_id(event_ms, event_seq)
  if starts then
    local queue = append(base, saved, log_id, blob)
    if queue then
      append_started(queue, log_id, blob, count, groups)
    elseif PlainJobs.tell(base, saved, event_id, count, groups) then
      redis.call('SET', base .. 'state', saved)
    end
    StartOnAdd.remember(worker, first, packed, blob)
    return first, packed
  end
  redis.call('SET', base .. 'state', saved)
  if not worker then WaitingList.wake({ base = base, waiting = waiting }) end
  PlainJobs.tell(base, saved, event_id, count, groups)
  local queue = append(base, nil, log_id, blob)
  if queue then
    State.save_state(queue)
    redis.call('XADD', base .. 'log', log_id, 'f', blob)
  end
  return first, packed
end

return {
  run = run,
}
