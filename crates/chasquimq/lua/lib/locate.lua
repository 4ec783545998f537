-- locate: where a job is (lib/find), what is known of it, and ways out of where it is; and detach, which gives a job of a frame a record of
-- its own.
-- @include lib/find

-- What reads the bodies of the frame that was read last, from the last on: jobs of one frame are often read one behind the other.
local reading = {}

local function frame_body(job)
  if reading.blob ~= job.blob or job.offset < reading.offset then
    reading = { blob = job.blob, body_of = frame_bodies(job.blob) }
  end
  reading.offset = job.offset
  return reading.body_of(job.offset)
end

-- What a job's vitals would say if it had a record.
local function frame_vitals(job)
  local pa = parent_in(job.brood, job.first, job.offset)
  if job.take then
    return { as = 1, po = job.take[1], pb = job.take[4] ~= '' and job.take[4] or nil, pa = pa }
  end
  if not job.run then return { pa = pa } end
  local run, result = job.run, nil
  if run[6] ~= '' then
    run.results = run.results or stored().list(run[6])
    result = run.results[job.number - job.run_start + 1]
  end
  return { am = 1, as = 1, po = run[4], pb = run[5] ~= '' and run[5] or nil, rv = result ~= '' and result or nil,
    fo = tonumber(redis.call('ZSCORE', base .. 'completed', whole(job.run_start))), pa = pa }
end

local function mark_hole(job, char)
  local raw = redis.call('HGET', base .. 'holes', whole(job.first))
  if not raw then
    S.holes = S.holes + 1
    raw = string.rep('1', job.n)
  end
  redis.call('HSET', base .. 'holes', whole(job.first), replace_chars(raw, job.offset, char))
end

-- Takes one job out of its completed run; the run's other jobs stay.
local function leave_run(job)
  local start, run = job.run_start, job.run
  local finished_on = redis.call('ZSCORE', base .. 'completed', whole(start))
  local before = job.number - start
  redis.call('HDEL', base .. 'runs', whole(start))
  redis.call('ZREM', base .. 'completed', whole(start))
  local function part(from, count)
    if count == 0 then return end
    store_run(start + from, { count, run[2], run[3], run[4], run[5], results_slice(run[6], from + 1, from + count), run[7] })
    redis.call('ZADD', base .. 'completed', finished_on, whole(start + from))
  end
  part(0, before)
  part(before + 1, run[1] - before - 1)
  forget_kept(job.first, job.n, job.number, 1)
end

-- Gives a located job a record of its own, in the same state and place. Its vitals are returned, and stored if there are any.
local function detach(job)
  if job.record then
    return stored().vitals(redis.call('HGET', base .. 'vitals', job.id))
  end
  local vitals = frame_vitals(job)
  job.body = frame_body(job)
  redis.call('HSET', base .. 'jobs', job.id, job.body)
  if job.state == 'waiting' then
    mark_hole(job, 'r')
  elseif job.state == 'active' then
    local chars = job.take[2] == '' and string.rep('1', job.n) or job.take[2]
    job.active = { job.take[1], 1, job.take[3], job.take[4], job.take[5] }
    redis.call('HSET', base .. 'active', job.id, cmsgpack.pack(job.active))
    job.take[2] = replace_chars(chars, job.offset, '0')
    store_take(job.first, job.n, job.take)
  else
    -- in this order: the run's first job gives the run its name in the set
    leave_run(job)
    redis.call('ZADD', base .. 'completed', whole(vitals.fo), job.id)
  end
  job.record = true
  if next(vitals) then redis.call('HSET', base .. 'vitals', job.id, cmsgpack.pack(vitals)) end
  return vitals
end

local function store_vitals(id, vitals)
  if next(vitals) then
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
  else
    redis.call('HDEL', base .. 'vitals', id)
  end
end

-- Takes a waiting job out of the line; its record, if it has one, stays.
local function leave_line(job)
  S.waiting = S.waiting - 1
  if not job.record then
    mark_hole(job, '0')
    return
  end
  local first, n, _, number = frame_with(job.id)
  local holes = first and is_waiting_frame(first, n) and redis.call('HGET', base .. 'holes', whole(first))
  -- one that left its frame before stands elsewhere
  if holes and holes:sub(number - first + 1, number - first + 1) == 'r' then
    mark_hole({ first = first, n = n, offset = number - first }, '0')
  elseif redis.call('LREM', base .. 'front', 1, job.id) == 0 then
    redis.call('HINCRBY', base .. 'gone', job.id, 1)
    S.gone = S.gone + 1
  end
end
