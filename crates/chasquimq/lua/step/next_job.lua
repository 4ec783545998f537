-- next_job: the job that a short step starts (step/fast_path): alone in its frame, or a record, where it is plain which one comes next. It is
-- {place (the number of one that is a frame, or a record's id), content (blob or body), from (front | prioritized | delayed, of a record), fields (of a
-- record: its state fields, as they are stored; false: none), starts (which start of it this is), has_failed (it has stack traces)}.
local Fetched = require('fetched')
local Frame = require('frame')
local Holder = require('holder')
local Packed = require('packed')
local State = require('state')
local Stored = require('stored')

-- A record; false: it is gone, or needs more than a short step does.
local function look_at_record(base, id, from, bare)
  local body = redis.call('HGET', base .. 'jobs', id)
  local raw = body and not bare and redis.call('HGET', base .. 'vitals', id)
  if not raw then return body and { place = id, content = body, from = from, fields = false, starts = 1 } end
  local ok, known = pcall(cmsgpack.unpack, raw)
  if not ok or type(known) ~= 'table' or known.df or known.ld or known.kl then return false end
  local starts = (tonumber(known.as) or 0) + 1
  if starts == 1 and (known.ex or known.du) then return false end
  return { place = id, content = body, from = from, fields = raw, starts = starts, has_failed = Stored.has_traces(known) }
end

-- The record that heads the waiting list; nil: none does. bare: no record has state fields.
local function look_at_front(base, bare)
  local front = base .. 'front'
  -- what another program wrote there is no job, and may as well be gone
  local id = bare and redis.call('LPOP', front) or not bare and redis.call('LRANGE', front, 0, 0)[1]
  if not id then return nil end
  return look_at_record(base, id, not bare and 'front', bare)
end

-- The frame behind the cursor.
local function look_at_log(queue)
  local entry = redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), '+', 'COUNT', 1)[1]
  if not entry then return nil end
  local first, blob = entry[2][1] == 'f' and entry[1]:match('^(%d+)-1$'), entry[2][2]
  if not first or Frame.header_of(blob) then return false end
  return { place = tonumber(first), content = blob }
end

-- What heads the waiting list. A single job is either in front or in the log, and one that was just added is in the log.
local function look_at_waiting(queue, bare)
  local waiting, head = queue.waiting, nil
  if waiting == 1 then head = look_at_log(queue) end
  if head == nil then head = look_at_front(queue.base, bare) end
  if head == nil and waiting > 1 then head = look_at_log(queue) end
  return head
end

-- What heads the jobs with a priority; nil: there is none; false: several would start.
local function look_at_prioritized(base, bare, room)
  local ids = redis.call('ZRANGE', base .. 'prioritized', 0, room > 1 and 1 or 0)
  if #ids == 0 then return nil end
  return #ids == 1 and look_at_record(base, ids[1], 'prioritized', bare)
end

local function start_record(base, head, step)
  local from, starts = head.from, head.starts
  redis.call('HSET', base .. 'active', head.place, Holder.entry(step, starts == 1 and Holder.RECORD or cmsgpack.pack(starts)))
  if from == 'front' then
    redis.call('LPOP', base .. 'front')
  elseif from then
    redis.call('ZREMRANGEBYRANK', base .. from, 0, 0)
  end
  local id, content, traces = Packed.text(head.place), head.content, head.has_failed and (redis.call('HGET', base .. 'traces', head.place) or '')
  local is_long = #content >= Fetched.LONG_BODY
  local columns = (traces and '\149\145' or '\148\145') .. id .. (is_long and '\0' or '\145' .. Packed.text(content))
    .. (head.fields and '\145' .. Packed.text(head.fields) or '\0') .. (starts > 1 and '\145' .. cmsgpack.pack(starts) or '\0') .. (traces and '\1' or '')
  local groups = '\149\161X\166active\145' .. id .. '\164prev\167waiting'
  if from == 'delayed' then groups = '\149\161X\167waiting\145' .. id .. '\164prev\167delayed' .. groups end
  local items = { -1, columns, is_long and content or traces or nil, is_long and traces or nil }
  return items, '\146\0\145' .. id, groups
end

-- Starts it. Gives the reply's items, what is remembered of them, and the events.
local function start(base, head, step)
  local place = head.place
  if type(place) ~= 'number' then return start_record(base, head, step) end
  local number = cmsgpack.pack(place)
  redis.call('HSET', base .. 'takes', place, Holder.entry(step, Holder.FRAME))
  return { place, 1, head.content }, '\146' .. number .. '\1', '\147\161a' .. number .. '\1'
end

return {
  look_at_record = look_at_record,
  look_at_waiting = look_at_waiting,
  look_at_prioritized = look_at_prioritized,
  start = start,
}
