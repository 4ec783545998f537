-- retention: finished jobs and how long they stay. Completed jobs of a frame are kept as runs: consecutive jobs that finished together.
-- Why runs: each of 6,400 tiny jobs that completed and are kept takes 18 bytes; a record takes 276.
--   completed  sorted set by finishedOn, and parts of a millisecond; member: a record's id, or the number of a run's first job
--   runs       first number of the run -> {count, frame_first, frame_n, processed_on, worker_name, results, ids}
--              results: '' (all undefined) or a MessagePack array of JSON texts ('' = undefined); ids: what those of children begin with
--   failed     sorted set by finishedOn, and parts of a millisecond; members are records' ids
local Frame = require('frame')
local Records = require('records')
local State = require('state')
local Stored = require('stored')

local function store_run(queue, number, run)
  redis.call('HSET', queue.base .. 'runs', State.whole(number), cmsgpack.pack(run))
end

-- Results from..to (1 is the first) of a run, as stored. Undefined ones are empty texts, so that the array has no gap.
local function results_slice(results, from, to)
  if results == '' then return results end
  local ok, all = pcall(cmsgpack.unpack, results)
  if not ok or type(all) ~= 'table' then return '' end
  local some = {}
  for i = from, to do some[#some + 1] = all[i] end
  return cmsgpack.pack(some)
end

-- Takes the first `count` jobs off a completed run, or all of it.
local function shorten_run(queue, number, run, count, finished_on)
  redis.call('HDEL', queue.base .. 'runs', State.whole(number))
  redis.call('ZREM', queue.base .. 'completed', State.whole(number))
  if count < run[1] then
    run[6] = results_slice(run[6], count + 1, run[1])
    run[1] = run[1] - count
    store_run(queue, number + count, run)
    redis.call('ZADD', queue.base .. 'completed', finished_on, State.whole(number + count))
  end
  Frame.forget_kept(queue, run[2], run[3], number, count)
  queue.completed = queue.completed - count
end

-- Drops finished jobs, in the order given ({member, score, ...}), until `count` are dropped. Their ids are added to `ids`, if wanted.
local function drop_finished(queue, set, members, count, ids)
  local records = {}
  for i = 1, #members, 2 do
    if count <= 0 then break end
    local member = members[i]
    local raw = set == 'completed' and redis.call('HGET', queue.base .. 'runs', member)
    local run = raw and Stored.run(raw)
    if run then
      local dropped = math.min(count, run[1])
      shorten_run(queue, tonumber(member), run, dropped, members[i + 1])
      count = count - dropped
      for number = tonumber(member), ids and tonumber(member) + dropped - 1 or 0 do ids[#ids + 1] = Frame.id_in(run[7], number) end
    else
      if raw then redis.call('HDEL', queue.base .. 'runs', member) end
      records[#records + 1] = member
      if ids then ids[#ids + 1] = member end
      if set == 'completed' then queue.completed = queue.completed - 1 end
      count = count - 1
    end
  end
  if #records > 0 then
    for from = 1, #records, 1000 do
      redis.call('ZREM', queue.base .. set, unpack(records, from, math.min(from + 999, #records)))
    end
    -- retention leaves a key the time it has; a cleaned job's key goes, as a removed one's. What waits for a child that failed is told
    -- only now that the child goes.
    Records.drop_records(queue, records, not ids, set == 'completed' or queue.flows == 0)
  end
end

-- Of a millisecond; scores are exact to that until the year 2248.
local PARTS, PARTED_UNTIL_MS = 1024, 2 ^ 43

-- Members of one score rank by their names, which says nothing of when their jobs ended. In `list` ({score, member, ...}) each that its name would
-- put before the one that ended before it gets a later part of the millisecond. by_count: what the set holds already comes before them.
local function rank_ends(queue, set, list, now_ms, by_count)
  local last, part, from, score = list[2], 0, 4, nil
  -- else nothing has ended in this millisecond before this call
  if by_count and queue.event_ms >= now_ms then
    local newest = redis.call('ZREVRANGE', queue.base .. set, 0, 0, 'WITHSCORES')
    local at = tonumber(newest[2])
    if at and math.floor(at) == now_ms then last, part, from = newest[1], (at - now_ms) * PARTS, 2 end
  end
  if now_ms >= PARTED_UNTIL_MS then return end
  for i = from, #list, 2 do
    local member = list[i]
    -- a run that is shortened gets a longer name only when its numbers do
    if #member ~= #last or member <= last then part, score = math.min(part + 1, PARTS - 1), nil end
    if part > 0 then
      -- written once for all members that share it
      score = score or string.format('%.17g', now_ms + part / PARTS)
      list[i - 1] = score
    end
    last = member
  end
end

-- When a job ended, by the score of the member that it is, or lies in.
local function ended_on(score)
  local ms = tonumber(score)
  return ms and math.floor(ms)
end

-- The highest score of what ended at that time, or before.
local function until_ms(ms)
  -- beyond what whole numbers tell
  if ms >= 2 ^ 53 then return '+inf' end
  return '(' .. State.whole(ms + 1)
end

-- Members (records or runs) that one call drops beyond as many as ended in it: of a set that a rule has not bounded before, the rest goes with
-- the jobs that end next.
local MOST_EXCESS = 1000

-- Applies one retention rule {count or -1, age in seconds or -1, limit} to a whole finished set.
-- `finished` jobs of this rule ended in this batch: its limit is for each of them. `later` jobs ended after the last of them: its count says nothing
-- of those.
local function apply_keep(queue, set, rule, now_ms, finished, later)
  local max_count, age, most = rule[1], rule[2], finished + MOST_EXCESS
  local limit = math.min(rule[3] * finished, most)
  if age >= 0 then
    local expired = redis.call('ZREVRANGEBYSCORE', queue.base .. set, until_ms(now_ms - age * 1000), '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
    drop_finished(queue, set, expired, limit)
  end
  if max_count > 0 then
    local excess = (set == 'completed' and queue.completed or redis.call('ZCARD', queue.base .. set)) - later - max_count
    if excess > 0 then
      local n = math.min(excess, most)
      -- of those that failed the newest first: the parent of the oldest, told of last, heads the waiting list
      local members = set == 'completed' and redis.call('ZRANGE', queue.base .. set, 0, n - 1, 'WITHSCORES')
        or redis.call('ZREVRANGE', queue.base .. set, -n, -1, 'WITHSCORES')
      drop_finished(queue, set, members, excess)
    end
  end
end

return {
  store_run = store_run,
  results_slice = results_slice,
  shorten_run = shorten_run,
  drop_finished = drop_finished,
  rank_ends = rank_ends,
  ended_on = ended_on,
  until_ms = until_ms,
  apply_keep = apply_keep,
}
