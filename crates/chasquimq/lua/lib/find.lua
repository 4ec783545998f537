-- find: where a job is, by its id, in any state. Changes nothing.
local RECORD_SETS = { 'completed', 'failed', 'delayed', 'prioritized', 'waiting-children' }

-- State of a job that has a record, and its active entry if it is active.
local function record_state(id)
  local raw = redis.call('HGET', base .. 'active', id)
  if raw then return 'active', stored().active(raw) end
  for _, set in ipairs(RECORD_SETS) do
    if redis.call('ZSCORE', base .. set, id) then return set end
  end
  return 'waiting'
end

-- The log entry whose frame the number belongs to: first, n, blob; or nil. Reference entries have higher sequence parts.
local function frame_of(number)
  local entry = redis.call('XREVRANGE', base .. 'log', entry_id(number, 1099511627775), '-', 'COUNT', 1)[1]
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
  if number and id_in(ids, number) == id then return number, ids end
end

-- The frame that was looked at last: jobs of one frame are often looked for one behind the other. What a script takes out of the log
-- meanwhile is told by where its jobs are, as before.
local seen_frame = {}

-- The frame that the job of this id lies in, or lay in: first, n, blob, the job's number, brood; or nil.
local function frame_with(id)
  local number, ids = number_in(id)
  if not number then return nil end
  local seen = seen_frame
  if seen.base ~= base or number < seen.first or number >= seen.first + seen.n then
    local first, n, blob = frame_of(number)
    if not first then return nil end
    seen = { base = base, first = first, n = n, blob = blob, brood = brood_of(blob) }
    seen_frame = seen
  end
  if ids ~= (seen.brood and seen.brood[1]) then return nil end
  return seen.first, seen.n, seen.blob, number, seen.brood
end

-- The run that was found last: jobs of one run are often looked for one behind the other. What became of it meanwhile is told by what is
-- stored.
local seen_run = {}

-- The kept run that holds a job of a frame: its first number and its contents, or nil.
local function run_of(first, number)
  local seen = seen_run
  if seen.base == base and number >= seen.start and number < seen.start + seen.run[1]
    and redis.call('HGET', base .. 'runs', whole(seen.start)) == seen.raw then return seen.start, seen.run end
  local fields = {}
  for candidate = number, first, -1 do fields[#fields + 1] = whole(candidate) end
  for i, raw in ipairs(redis.call('HMGET', base .. 'runs', unpack(fields))) do
    if raw then
      local start, run = number - i + 1, stored().run(raw)
      if run and start + run[1] > number then
        seen_run = { base = base, start = start, run = run, raw = raw }
        return start, run
      end
      return nil
    end
  end
end

local function is_waiting_frame(first, n)
  return first > S.cursor_ms or (first == S.cursor_ms and n > S.cursor_seq)
end

-- A job: {id, state, body} with record = true and active (its entry) if it has a record; else with first, n, offset, blob and brood of its
-- frame, take if it is active, run and run_start if it is completed. nil when there is no such job.
local function locate(id)
  local body = redis.call('HGET', base .. 'jobs', id)
  if body then
    local state, active = record_state(id)
    return { id = id, record = true, state = state, body = body, active = active }
  end
  local first, n, blob, number, brood = frame_with(id)
  if not first then return nil end
  local job = { id = id, first = first, n = n, offset = number - first, blob = blob, number = number, brood = brood }
  if is_waiting_frame(first, n) then
    local holes = S.holes > 0 and redis.call('HGET', base .. 'holes', whole(first))
    if holes and holes:sub(job.offset + 1, job.offset + 1) ~= '1' then return nil end
    job.state = 'waiting'
    return job
  end
  local take = load_take(first)
  if take and (take[2] == '' or take[2]:sub(job.offset + 1, job.offset + 1) == '1') then
    job.state, job.take = 'active', take
    return job
  end
  job.run_start, job.run = run_of(first, number)
  if not job.run then return nil end
  job.state = 'completed'
  return job
end
