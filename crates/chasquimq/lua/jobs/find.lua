-- find: where a job is, by its id, in any state. Changes nothing.
local Frame = require('frame')
local State = require('state')
local Stored = require('stored')

local RECORD_SETS = { 'completed', 'failed', 'delayed', 'prioritized', 'waiting-children' }

-- State of a job that has a record, and its active entry if it is active.
local function record_state(queue, id)
  local raw = redis.call('HGET', queue.base .. 'active', id)
  if raw then return 'active', Stored.active(raw) end
  for _, set in ipairs(RECORD_SETS) do
    if redis.call('ZSCORE', queue.base .. set, id) then return set end
  end
  return 'waiting'
end

-- The log entry whose frame the number belongs to: first, n, blob; or nil. Reference entries have higher sequence parts.
local function frame_of(queue, number)
  local entry = redis.call('XREVRANGE', queue.base .. 'log', State.entry_id(number, 1099511627775), '-', 'COUNT', 1)[1]
  if not entry or entry[2][1] ~= 'f' then return nil end
  local first, n = entry[1]:match('^(%d+)-(%d+)$')
  first, n = tonumber(first), tonumber(n)
  if number >= first + n then return nil end
  return first, n, entry[2][2]
end

-- The number in an id that is made from one, and what it begins with if it is a child's; nil for any other id.
local function number_in(id)
  if #id <= 15 then return id:match('^[1-9]%d*$') and tonumber(id) end
  local ids, digits = id:match('^(%x+%-%x+%-4%x+%-%x+%-)(%x+)$')
  local number = ids and #ids == 24 and #digits == 12 and tonumber(digits, 16)
  if number and Frame.id_in(ids, number) == id then return number, ids end
end

-- The frame that was looked at last: jobs of one frame are often looked for one behind the other. What a script takes out of the log
-- meanwhile is told by where its jobs are, as before.
-- The frame that the job of this id lies in, or lay in: first, n, blob, the job's number, parent header; or nil.
local function frame_with(queue, id)
  local number, ids = number_in(id)
  if not number then return nil end
  local seen = queue.seen_frame
  if not seen or number < seen.first or number >= seen.first + seen.n then
    local first, n, blob = frame_of(queue, number)
    if not first then return nil end
    seen = { first = first, n = n, blob = blob, header = Frame.header_of(blob) }
    queue.seen_frame = seen
  end
  if ids ~= (seen.header and seen.header[1]) then return nil end
  return seen.first, seen.n, seen.blob, number, seen.header
end

-- The kept run that holds a job of a frame: its first number and its contents, or nil. seen_run of the queue: the one that was found last, as
-- jobs of one run are often looked for one behind the other; what became of it meanwhile is told by what is stored.
local function run_of(queue, first, number)
  local seen = queue.seen_run
  if seen and number >= seen.start and number < seen.start + seen.run[1]
    and redis.call('HGET', queue.base .. 'runs', State.whole(seen.start)) == seen.raw then return seen.start, seen.run end
  local fields = {}
  for candidate = number, first, -1 do fields[#fields + 1] = State.whole(candidate) end
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'runs', unpack(fields))) do
    if raw then
      local start, run = number - i + 1, Stored.run(raw)
      if run and start + run[1] > number then
        queue.seen_run = { start = start, run = run, raw = raw }
        return start, run
      end
      return nil
    end
  end
end

local function is_waiting_frame(queue, first, n)
  return first > queue.cursor_ms or (first == queue.cursor_ms and n > queue.cursor_seq)
end

-- A job: {id, state, body} with record = true and active (its entry) if it has a record; else with first, n, offset, blob and parent header of its
-- frame, take if it is active, run and run_start if it is completed. nil when there is no such job.
local function locate(queue, id)
  local body = redis.call('HGET', queue.base .. 'jobs', id)
  if body then
    local state, active = record_state(queue, id)
    return { id = id, record = true, state = state, body = body, active = active }
  end
  local first, n, blob, number, header = frame_with(queue, id)
  if not first then return nil end
  local job = { id = id, first = first, n = n, offset = number - first, blob = blob, number = number, header = header }
  if is_waiting_frame(queue, first, n) then
    local holes = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first))
    if holes and holes:sub(job.offset + 1, job.offset + 1) ~= '1' then return nil end
    job.state = 'waiting'
    return job
  end
  local holder = Frame.load_holder(queue, first)
  if holder and (holder[2] == '' or holder[2]:sub(job.offset + 1, job.offset + 1) == '1') then
    job.state, job.holder = 'active', holder
    return job
  end
  job.run_start, job.run = run_of(queue, first, number)
  if not job.run then return nil end
  job.state = 'completed'
  return job
end

return {
  record_state = record_state,
  frame_of = frame_of,
  frame_with = frame_with,
  is_waiting_frame = is_waiting_frame,
  locate = locate,
}
