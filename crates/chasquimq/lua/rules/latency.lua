-- latency: how long jobs took, as workers that ask for it have measured (src/latency.rs): in line, running, and from when they could start to their end.
--   latency  hash: m<minute> h<hour> d<day>, counted from the epoch, and `all`: {{ms in all, bucket, jobs, bucket, jobs, ...}, the same of runs, to completion,
--            jobs that were added}; id: the queue's last job number as that was noted last
-- A minute counts for its hour, its day, and all, so that each span is read at one grain. Old ones go when an hour begins, and all with the last day.
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local GRAINS, TIMES = { { 'm', 1, 180 }, { 'h', 60, 192 }, { 'd', 1440, 92 } }, 3
local KEPT_MS = 92 * 86400000

local function are_numbers(list)
  if type(list) ~= 'table' or #list % 2 == 0 then return false end
  for i = 1, #list do
    if type(list[i]) ~= 'number' then return false end
  end
  return true
end

-- One of the times, with more. What cannot be read begins anew.
local function sum(known, more)
  local of, at = are_numbers(known) and known or { 0 }, {}
  for i = 2, #of, 2 do at[of[i]] = i + 1 end
  of[1] = of[1] + more[1]
  for i = 2, #more, 2 do
    local place = at[more[i]]
    if place then of[place] = of[place] + more[i + 1] else WaitingList.append(of, more[i], more[i + 1]) end
  end
  return of
end

-- Minutes, hours and days that are too old by now.
local function old_fields(key, minute)
  local old, oldest = {}, {}
  for _, grain in ipairs(GRAINS) do oldest[grain[1]] = math.floor(minute / grain[2]) - grain[3] end
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local name, number = field:match('^([mhd])(%d+)$')
    if name and tonumber(number) < oldest[name] then old[#old + 1] = field end
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

-- Adds what was measured in a minute, and the jobs that were added.
local function add(base, minute, measured, jobs)
  local key, fields, set = base .. 'latency', { 'all' }, {}
  for i, grain in ipairs(GRAINS) do fields[i + 1] = string.format('%s%d', grain[1], math.floor(minute / grain[2])) end
  local known = redis.call('HMGET', key, unpack(fields))
  for i, field in ipairs(fields) do
    local times = Stored.list(known[i])
    for time = 1, TIMES do times[time] = sum(times[time], measured[time]) end
    times[TIMES + 1] = (tonumber(times[TIMES + 1]) or 0) + jobs
    WaitingList.append(set, field, cmsgpack.pack({ unpack(times, 1, TIMES + 1) }))
  end
  redis.call('HSET', key, unpack(set))
  if known[3] then return end
  local old = old_fields(key, minute)
  if #old > 0 then redis.call('HDEL', key, unpack(old)) end
  redis.call('PEXPIRE', key, KEPT_MS)
end

return {
  added = added,
  add = add,
}
