-- locate: where a job is (jobs/find), what is known of it, and ways out of where it is; and detach, which gives a job of a frame a record of
-- its own.
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local Large = require('large')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')

-- reading of the queue: what gives the bodies of the frame that was read last, as jobs of one frame are often read one behind the other; bodies_of: by
-- which function of jobs/frame.
local function read_body(queue, job, bodies_of)
  local reading = queue.reading
  if not reading or reading.bodies_of ~= bodies_of or reading.first ~= job.first or reading.blob ~= job.blob or job.offset < reading.offset then
    reading = { bodies_of = bodies_of, first = job.first, blob = job.blob, body_of = bodies_of(queue, job.first, job.blob, job.n) }
    queue.reading = reading
  end
  reading.offset = job.offset
  return reading.body_of(job.offset)
end

local function frame_body(queue, job) return read_body(queue, job, Frame.frame_bodies) end
local function given_body(queue, job) return read_body(queue, job, Frame.given_bodies) end

-- What a job's state fields would say if it had a record.
local function frame_fields(queue, job)
  local pa = Frame.parent_in(job.header, job.first, job.offset)
  if job.holder then
    return { as = 1, po = job.holder[1], pb = job.holder[4] ~= '' and job.holder[4] or nil, pa = pa }
  end
  if not job.run then return { pa = pa } end
  local run, result = job.run, nil
  if run[6] ~= '' then
    run.results = run.results or Stored.list(run[6])
    result = run.results[job.number - job.run_start + 1]
  end
  return { am = 1, as = 1, po = run[4], pb = run[5] ~= '' and run[5] or nil, rv = result ~= '' and result or nil,
    fo = Retention.ended_on(redis.call('ZSCORE', queue.base .. 'completed', State.whole(job.run_start))), pa = pa }
end

-- Notes what became of a job of a waiting frame. With the last of its jobs the frame leaves the waiting list.
local function mark_hole(queue, job, char)
  local field = State.whole(job.first)
  local raw = redis.call('HGET', queue.base .. 'holes', field)
  local chars = Frame.replace_chars(raw or string.rep('1', job.n), job.offset, char)
  if chars:find('[1r]') then
    if not raw then queue.holes = queue.holes + 1 end
    redis.call('HSET', queue.base .. 'holes', field, chars)
    return
  end
  Frame.drop_frame(queue, job.first, job.n)
  if not raw then return end
  redis.call('HDEL', queue.base .. 'holes', field)
  queue.holes = queue.holes - 1
end

-- Takes one job out of its completed run; the run's other jobs stay. Gives the score that they have.
local function leave_run(queue, job)
  local start, run = job.run_start, job.run
  local finished_on = redis.call('ZSCORE', queue.base .. 'completed', State.whole(start)) or State.whole(run[4])
  local before = job.number - start
  redis.call('HDEL', queue.base .. 'runs', State.whole(start))
  redis.call('ZREM', queue.base .. 'completed', State.whole(start))
  local function part(from, count)
    if count == 0 then return end
    Retention.store_run(queue, start + from, { count, run[2], run[3], run[4], run[5], Retention.results_slice(run[6], from + 1, from + count), run[7] })
    redis.call('ZADD', queue.base .. 'completed', finished_on, State.whole(start + from))
  end
  part(0, before)
  part(before + 1, run[1] - before - 1)
  Frame.forget_kept(queue, job.first, job.n, job.number, 1)
  return finished_on
end

-- The body of a job that gets a record. Data that lay apart for this job alone go on doing so (jobs/large), so that Lua reads them this once.
local function body_for_record(queue, job, fields)
  if job.n > 1 or job.header or not Frame.bytes_apart(queue, job.blob) then return frame_body(queue, job) end
  local ok, timestamp, options, name, data = pcall(cmsgpack.unpack, Frame.whole_blob(queue, job.first, job.blob))
  if not ok or type(data) ~= 'string' then return frame_body(queue, job) end
  fields.ld = Large.put_data(queue, job.id, data)
  return cmsgpack.pack({ timestamp, options, name, '' })
end

-- Gives a located job of a frame a record of its own, in the same state and place; is_leaving: but not among the active ones. Its state fields are
-- returned, for the caller to store.
local function leave_frame(queue, job, is_leaving)
  local fields = frame_fields(queue, job)
  job.body = body_for_record(queue, job, fields)
  redis.call('HSET', queue.base .. 'jobs', job.id, job.body)
  if job.state == 'waiting' then
    mark_hole(queue, job, 'r')
  elseif job.state == 'active' then
    local chars = job.holder[2] == '' and string.rep('1', job.n) or job.holder[2]
    job.active = { job.holder[1], 1, job.holder[3], job.holder[4], job.holder[5] }
    if not is_leaving then redis.call('HSET', queue.base .. 'active', job.id, cmsgpack.pack(job.active)) end
    job.holder[2] = Frame.replace_chars(chars, job.offset, '0')
    Frame.store_holder(queue, job.first, job.n, job.holder)
  else
    -- in this order: the run's first job gives the run its name in the set
    redis.call('ZADD', queue.base .. 'completed', leave_run(queue, job), job.id)
  end
  job.record = true
  return fields
end

-- The same of any located job; its state fields are returned, and stored if there are any.
local function detach(queue, job)
  if job.record then return Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id)) end
  local fields = leave_frame(queue, job)
  if next(fields) then redis.call('HSET', queue.base .. 'vitals', job.id, cmsgpack.pack(fields)) end
  return fields
end

local function store_fields(queue, id, fields)
  if next(fields) then
    redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(fields))
  else
    redis.call('HDEL', queue.base .. 'vitals', id)
  end
end

-- Takes a waiting job out of the waiting list; its record, if it has one, stays.
local function leave_waiting(queue, job)
  if job.record and Groups.leave_waiting(queue, job.id, job.body) then return end
  queue.waiting = queue.waiting - 1
  if not job.record then
    mark_hole(queue, job, '0')
    return
  end
  local first, n, _, number = Find.frame_with(queue, job.id)
  local holes = first and Find.is_waiting_frame(queue, first, n) and redis.call('HGET', queue.base .. 'holes', State.whole(first))
  -- one that left its frame before stands elsewhere
  if holes and holes:sub(number - first + 1, number - first + 1) == 'r' then
    mark_hole(queue, { first = first, n = n, offset = number - first }, '0')
  elseif redis.call('LREM', queue.base .. 'front', 1, job.id) == 0 then
    redis.call('HINCRBY', queue.base .. 'gone', job.id, 1)
    queue.stale = queue.stale + 1
  end
end

return {
  frame_body = frame_body,
  given_body = given_body,
  frame_fields = frame_fields,
  body_for_record = body_for_record,
  mark_hole = mark_hole,
  leave_run = leave_run,
  leave_frame = leave_frame,
  detach = detach,
  store_fields = store_fields,
  leave_waiting = leave_waiting,
}
