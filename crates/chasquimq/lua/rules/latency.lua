-- latency: how long jobs took, as workers that ask for it have measured (src/latency.rs): in line, running, and from when they could start to their end.
--   latency  hash: m<minute> h<hour> d<day>, counted from the epoch, and `all`: {{ms in all, bucket, jobs, bucket, jobs, ...}, the same of runs, to completion,
--            jobs that were added}; id: the queue's last job number as that was noted last
--   group-latency:<group>  hash: the same of one group, with f<five minutes> in the place of minutes, and without `all` and jobs that were added
--   groups-measured        sorted set: groups that have such a key, by the hour for which they were measured last
-- A minute counts for its hour, its day, and all, so that each span is read at one grain. Old ones go when an hour begins, and all with the last day.
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- Name, minutes, how many are kept; the last is days.
local OF_QUEUE, OF_GROUPS = { { 'm', 1, 180 }, { 'h', 60, 192 }, { 'd', 1440, 92 } }, { { 'f', 5, 36 }, { 'h', 60, 48 }, { 'd', 1440, 16 } }
local TIMES, DAY_MS = 3, 86400000
-- Hours after which a group's key has expired, by any clock.
local GROUP_HOURS = 17 * 24

local function are_numbers(list)
  if type(list) ~= 'table' or #list % 2 == 0 then return false end
  for i = 1, #list do
    if type(list[i]) ~= 'number' then return false end
  end
  return true
end

-- One of the times, with more. What cannot be read begins anew.
local function sum(known, more)
  if not are_numbers(known) then return more end
  local of, at = known, {}
  for i = 2, #of, 2 do at[of[i]] = i + 1 end
  of[1] = of[1] + more[1]
  for i = 2, #more, 2 do
    local place = at[more[i]]
    if place then of[place] = of[place] + more[i + 1] else WaitingList.append(of, more[i], more[i + 1]) end
  end
  return of
end

-- Minutes, hours and days that are too old by now.
local function old_fields(key, grains, minute)
  local old, oldest = {}, {}
  for _, grain in ipairs(grains) do oldest[grain[1]] = math.floor(minute / grain[2]) - grain[3] end
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local name, number = field:match('^(%l)(%d+)$')
    if oldest[name] and tonumber(number) < oldest[name] then old[#old + 1] = field end
  end
  return old
end

-- How many jobs were added since this was asked last.
local function added(queue)
  local key = queue.base .. 'latency'
  local before = tonumber(redis.call('HGET', key, 'id'))
  redis.call('HSET', key, 'id', State.whole(queue.id))
  return before and math.max(queue.id - before, 0) or 0
end

-- Adds what was measured in a minute, and the jobs that were added; those of a group are not known. True where nothing was known of its hour.
local function add(key, grains, minute, measured, jobs)
  local fields, set = {}, {}
  for i, grain in ipairs(grains) do fields[i] = string.format('%s%d', grain[1], math.floor(minute / grain[2])) end
  if jobs then fields[#fields + 1] = 'all' end
  local known = redis.call('HMGET', key, unpack(fields))
  for i, field in ipairs(fields) do
    local times = Stored.list(known[i])
    for time = 1, TIMES do times[time] = sum(times[time], measured[time]) end
    times[TIMES + 1] = jobs and (tonumber(times[TIMES + 1]) or 0) + jobs
    WaitingList.append(set, field, cmsgpack.pack({ unpack(times, 1, jobs and TIMES + 1 or TIMES) }))
  end
  redis.call('HSET', key, unpack(set))
  if known[2] then return false end
  local old = old_fields(key, grains, minute)
  if #old > 0 then redis.call('HDEL', key, unpack(old)) end
  redis.call('PEXPIRE', key, grains[#grains][3] * DAY_MS)
  return true
end

local function add_of_queue(base, minute, measured, jobs) add(base .. 'latency', OF_QUEUE, minute, measured, jobs) end

local function group_key(base, group) return base .. 'group-latency:' .. group end

-- The same of groups. measured: {group, minute, times, ...}. Groups whose keys have expired are forgotten, twice as many as may come.
local function add_of_groups(base, measured)
  local set, seen, last = base .. 'groups-measured', {}, 0
  for i = 1, #measured, 3 do
    local group, minute = measured[i], measured[i + 1]
    if add(group_key(base, group), OF_GROUPS, minute, measured[i + 2]) then
      last = math.max(last, math.floor(minute / 60))
      WaitingList.append(seen, State.whole(math.floor(minute / 60)), group)
    end
  end
  if #seen == 0 then return end
  redis.call('ZADD', set, unpack(seen))
  redis.call('PEXPIRE', set, GROUP_HOURS / 24 * DAY_MS)
  local expired = redis.call('ZRANGEBYSCORE', set, '-inf', State.whole(last - GROUP_HOURS), 'LIMIT', 0, #seen)
  if #expired > 0 then redis.call('ZREM', set, unpack(expired)) end
end

-- Nothing is known of a group any more.
local function forget_group(base, group)
  redis.call('DEL', group_key(base, group))
  redis.call('ZREM', base .. 'groups-measured', group)
end

return {
  added = added,
  add_of_queue = add_of_queue,
  add_of_groups = add_of_groups,
  forget_group = forget_group,
}
