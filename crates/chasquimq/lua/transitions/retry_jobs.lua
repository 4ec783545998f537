-- retry_jobs: failed | completed -> waiting, for all that ended by some time, in the order in which they did; a bounded step a call.
-- KEYS    base (also: state meta log takes frames apart:<first> jobs vitals large completed failed runs events trims wake memo:<client>:<slot>;
--         of parents: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, state (failed | completed), before_ms (epoch ms), count (most jobs to move)
-- RETURNS {moved, done 1|0}
-- ERRORS  none      EVENTS waiting      COST O(500 jobs)
-- SOURCE  BullMQ 6.7 Queue#retryJobs
-- FLAGS   allow-oom
local Events = require('events')
local Frame = require('frame')
local Groups = require('groups')
local Large = require('large')
local Locate = require('locate')
local Memo = require('memo')
local Parents = require('parents')
local ReadBudget = require('read_budget')
local Retention = require('retention')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local PAGE = 500

-- Of a queue: retrying, what is asked for: state, before_ms, count; what was read: bytes of frames, first and blob of the last one; and what is moved: ids,
-- jobs_set, fields_set.
local function keep_fields(queue, id, fields)
  local retrying = queue.retrying
  Large.forget_end(queue, id, fields, retrying.state)
  if fields.pa then Parents.wait_again(queue, fields.pa, id, retrying.state) end
  if next(fields) then
    WaitingList.append(retrying.fields_set, id, cmsgpack.pack(fields))
  else
    redis.call('HDEL', queue.base .. 'vitals', id)
  end
  retrying.ids[#retrying.ids + 1] = id
end

-- The frame of a run, which may be that of the run before.
local function frame_with(queue, first, n)
  local retrying = queue.retrying
  if retrying.first ~= first then
    retrying.first, retrying.blob = first, Frame.frame_blob(queue, first, n)
    retrying.bytes = retrying.bytes + (Frame.bytes_apart(queue, retrying.blob) or #retrying.blob)
  end
  return retrying.blob
end

-- The jobs of a completed run are given records.
local function move_run(queue, member, run, finished_on)
  local retrying = queue.retrying
  local start, taken = tonumber(member), math.min(run[1], retrying.count - #retrying.ids)
  local blob = frame_with(queue, run[2], run[3])
  local header = Frame.header_of(blob)
  for number = start, start + taken - 1 do
    local job = { id = Frame.id_in(run[7], number), first = run[2], n = run[3], offset = number - run[2], blob = blob, header = header }
    local fields = { am = 1, as = 1, pb = run[5] ~= '' and run[5] or nil, pa = Frame.parent_in(header, run[2], job.offset) }
    WaitingList.append(retrying.jobs_set, job.id, Locate.body_for_record(queue, job, fields))
    keep_fields(queue, job.id, fields)
  end
  Retention.shorten_run(queue, start, run, taken, finished_on)
end

local function move_records(queue, ids)
  if #ids == 0 then return end
  local state = queue.retrying.state
  local fields = redis.call('HMGET', queue.base .. 'vitals', unpack(ids))
  for i, id in ipairs(ids) do keep_fields(queue, id, Stored.fields(fields[i])) end
  redis.call('ZREM', queue.base .. state, unpack(ids))
  if state == 'completed' then queue.completed = queue.completed - #ids end
end

-- Members and their scores, and whether no others are behind them.
local function next_page(queue)
  local retrying = queue.retrying
  local limit = retrying.state == 'completed' and 100 or retrying.count
  local page = redis.call('ZRANGEBYSCORE', queue.base .. retrying.state, '-inf', Retention.until_ms(retrying.before_ms), 'WITHSCORES', 'LIMIT', 0, limit)
  return page, #page < 2 * limit
end

-- Gives whether it moved all of them.
local function move_failed(queue, page)
  local ids = {}
  for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
  local last = ReadBudget.last_fitting(queue, { 'vitals' }, ids, 1, 0)
  move_records(queue, { unpack(ids, 1, last) })
  return last == #ids
end

-- Runs and records may alternate, and move in order. Gives whether it moved all of them: it reads no more than about a MiB.
local function move_completed(queue, page)
  local retrying, ids, members = queue.retrying, {}, {}
  for i = 1, #page, 2 do members[#members + 1] = page[i] end
  local last = ReadBudget.last_fitting(queue, { 'runs', 'vitals' }, members, 1, 0)
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'runs', unpack(members, 1, last))) do
    if #retrying.ids + #ids >= retrying.count or retrying.bytes >= ReadBudget.MAX_BYTES then
      last = 0
      break
    end
    local run = Stored.run(raw)
    if run then
      move_records(queue, ids)
      ids = {}
      move_run(queue, members[i], run, page[2 * i])
    else
      ids[#ids + 1] = members[i]
    end
  end
  move_records(queue, ids)
  return #retrying.ids < retrying.count and last == #members
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, state = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local before_ms, count = tonumber(args[6]), tonumber(args[7])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local retrying = { state = state, before_ms = before_ms, count = math.min(count, PAGE), bytes = 0, ids = {}, jobs_set = {}, fields_set = {} }
  queue.retrying = retrying
  local page, is_last = next_page(queue)
  if #page > 0 then
    local is_whole = state == 'failed' and move_failed(queue, page) or state ~= 'failed' and move_completed(queue, page)
    is_last = is_last and is_whole
  end
  WaitingList.call_in_chunks('HSET', base .. 'jobs', retrying.jobs_set)
  WaitingList.call_in_chunks('HSET', base .. 'vitals', retrying.fields_set)
  local moved = retrying.ids
  if #moved > 0 then
    WaitingList.append_references(queue, Groups.enter_own(queue, moved, false))
    for _, id in ipairs(moved) do Events.emit_job(queue, 'waiting', id, state) end
    WaitingList.wake(queue)
  end
  Events.flush_events(queue, now_ms)
  -- nobody comes again to look: what was moved may have failed once more in this very millisecond
  local reply = { #moved, is_last and 1 or 0 }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
