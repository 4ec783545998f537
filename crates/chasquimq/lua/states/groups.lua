-- groups: waiting jobs that have a group, which is the sixth value of their body; the fifth is their priority in it (states/prioritized). Groups with jobs
-- are served in turns (step/turns), after the jobs that have none.
--   grouped         sorted set: all such jobs, in the order in which they came
--   group:<group>   sorted set: those of one group, by priority and place, as in states/prioritized
--   groups          sorted set: groups of which a job may start, by their next turn. A turn is TURN long, or that part of it which the group's weight gives
--   groups-limited  sorted set: groups of which none may start for a while, by when that ends (epoch ms of the server)
--   groups-maxed    sorted set: groups that have as many active jobs as they may, and others, by when that began
--   groups-paused   sorted set: paused groups that have jobs, by when they came to be here
--   group-active    hash: group -> its active jobs. The entry of an active record names its group (states/holder)
--   group-settings  hash: group -> what was set for it: w weight, c active jobs, m starts in d ms, p paused, o strict order
--   group-starts:<group>  starts in this window of the group's limit, more than any limit allows where it was limited by hand; it expires
--   group-held      string: a group was limited by hand; it expires with the last of these limits
--   turns           string of three doubles: the turn that was served last, the last place in any group, and the next turn of the jobs without a group where
--                   they have turns. It is there once a job has had a group
-- A group with jobs is in one of these four sets, and one without in none. No group is looked for where queue.place is 0.
local State = require('state')
local WaitingList = require('waiting_list')

local PRIORITY_STEP, FIRST_PLACE = 4294967296, 16777216
local TURN = 1048576
local HAS_GROUP = 150 -- first byte of a body with six values
-- More starts than any limit allows.
local USED_UP = 9007199254740991
local NONE = {}
local MANY, NO_LIST = 32, '                                                                 '
local STATUSES = { 'groups', 'groups-limited', 'groups-maxed', 'groups-paused' }

-- Whether a job of this queue ever had a group.
local function are_used(queue)
  if queue.has_groups == nil then queue.has_groups = queue.place > 0 and redis.call('EXISTS', queue.base .. 'turns') == 1 end
  return queue.has_groups
end

-- What `turns` says: {turn, place, next turn of jobs without a group}, to be changed, and saved.
local function clock_of(queue)
  if not queue.turns then
    local raw = redis.call('GET', queue.base .. 'turns')
    local turn, place, others = 0, FIRST_PLACE, 0
    if raw and #raw == 24 then turn, place, others = struct.unpack('<ddd', raw) end
    queue.turns = { turn, place, others }
  end
  return queue.turns
end

local function save_clock(queue)
  local clock = clock_of(queue)
  redis.call('SET', queue.base .. 'turns', struct.pack('<ddd', clock[1], clock[2], clock[3]))
  queue.has_groups = true
end

-- From now on jobs that come back to the waiting list are asked for their group, as those that are added delayed will be.
local function expect(queue)
  queue.place = math.max(queue.place, FIRST_PLACE)
  if not are_used(queue) then save_clock(queue) end
end

local function key_of(queue, group) return queue.base .. 'group:' .. group end

local function starts_key(queue, group) return queue.base .. 'group-starts:' .. group end

-- The group of a job, and its priority there, by its body and its state fields; nil: it has none.
local function group_of(body, fields_raw)
  if not body or body:byte(1) ~= HAS_GROUP then return nil end
  local ok, values = pcall(cmsgpack.unpack, body)
  local group = ok and type(values) == 'table' and values[6]
  if type(group) ~= 'string' then return nil end
  local known, fields = pcall(cmsgpack.unpack, fields_raw or '')
  return group, known and type(fields) == 'table' and tonumber(fields.pr) or tonumber(values[5]) or 0
end

-- How many jobs wait in groups.
local function count(queue)
  return are_used(queue) and redis.call('ZCARD', queue.base .. 'grouped') or 0
end

local function read_settings(raw)
  local ok, settings = pcall(cmsgpack.unpack, raw or '')
  return ok and type(settings) == 'table' and settings or {}
end

local function settings_of(queue, group)
  return read_settings(redis.call('HGET', queue.base .. 'group-settings', group))
end

-- What it has started in this window of its limit.
local function starts_of(queue, group)
  return tonumber(redis.call('GET', starts_key(queue, group)) or 0) or 0
end

-- Whether it may start none for a while. settings, starts: what was set for it, and what it has started.
local function is_limited(queue, group, settings, starts)
  return starts >= (settings.m or USED_UP) or redis.call('ZSCORE', queue.base .. 'groups-limited', group) ~= false
end

-- An empty table is nothing that was set.
local function store_settings(queue, group, settings)
  if next(settings) then return redis.call('HSET', queue.base .. 'group-settings', group, cmsgpack.pack(settings)) end
  return redis.call('HDEL', queue.base .. 'group-settings', group)
end

-- The length of a group's turn: at least one, so that the heaviest group moves on, too.
local function turn_length(settings)
  local weight = tonumber(settings.w) or 1
  return math.min(math.max(TURN / (weight > 0 and weight or 1), 1), TURN * TURN)
end

-- Which of these groups have jobs: by name.
local function with_jobs(queue, groups)
  local has, keys = {}, {}
  for i, group in ipairs(groups) do keys[i] = key_of(queue, group) end
  for from = 1, #keys, 1000 do
    local to = math.min(from + 999, #keys)
    local count = redis.call('EXISTS', unpack(keys, from, to))
    -- most often all are alike
    for i = from, to do
      has[groups[i]] = count == to - from + 1 or (count > 0 and redis.call('EXISTS', keys[i]) == 1)
    end
  end
  return has
end

-- Groups that have jobs, and were in none of the sets, take their places: among the paused, or behind those that wait for a turn, but for groups whose
-- turn comes rarely. Whether they are limited is seen when it is their turn.
local function admit(queue, groups)
  if #groups == 0 then return end
  local has_settings = redis.call('EXISTS', queue.base .. 'group-settings') == 1
  local ring, clock, last = {}, clock_of(queue), redis.call('ZREVRANGE', queue.base .. 'groups', 0, 0, 'WITHSCORES')
  local turn = math.min(tonumber(last[2]) or clock[1] + TURN, clock[1] + 2 * TURN)
  for i, group in ipairs(groups) do
    local settings = has_settings and settings_of(queue, group) or NONE
    if settings.p then
      redis.call('ZADD', queue.base .. 'groups-paused', clock[2], group)
    else
      ring[#ring + 1], ring[#ring + 2] = State.whole(turn + i), group
    end
  end
  WaitingList.call_in_chunks('ZADD', queue.base .. 'groups', ring)
end

-- Groups leave their places.
local function retire(queue, groups)
  if #groups == 0 then return end
  for _, status in ipairs(STATUSES) do WaitingList.call_in_chunks('ZREM', queue.base .. status, groups) end
end

-- The place before the first job of this priority in a group, and that before all grouped jobs.
local function places_before(queue, group, priority)
  local low = priority * PRIORITY_STEP
  local lowest = redis.call('ZRANGEBYSCORE', key_of(queue, group), State.whole(low), '(' .. State.whole(low + PRIORITY_STEP), 'WITHSCORES', 'LIMIT', 0, 1)
  local first = redis.call('ZRANGE', queue.base .. 'grouped', 0, 0, 'WITHSCORES')
  return lowest[2] and math.max(tonumber(lowest[2]) - low - 1, 0) or FIRST_PLACE, first[2] and tonumber(first[2]) - 1 or FIRST_PLACE
end

local function next_place(queue)
  local clock = clock_of(queue)
  clock[2] = clock[2] + 1
  if clock[2] >= PRIORITY_STEP then clock[2] = FIRST_PLACE end
  return clock[2]
end

-- Jobs enter their groups, in this order, at the end of their priority. groups and priorities: one a job (priorities: 0 = none has one).
local function enter_end(queue, ids, groups, priorities)
  local all, lists, order = {}, {}, {}
  for i, id in ipairs(ids) do
    local group, place = groups[i], next_place(queue)
    local list = lists[group]
    if not list then
      list = {}
      lists[group], order[#order + 1] = list, group
    end
    WaitingList.append(all, State.whole(place), id)
    WaitingList.append(list, State.whole((priorities ~= 0 and priorities[i] or 0) * PRIORITY_STEP + place), id)
  end
  WaitingList.call_in_chunks('ZADD', queue.base .. 'grouped', all)
  local had, new = with_jobs(queue, order), {}
  for _, group in ipairs(order) do
    WaitingList.call_in_chunks('ZADD', key_of(queue, group), lists[group])
    if not had[group] then new[#new + 1] = group end
  end
  admit(queue, new)
  save_clock(queue)
end

-- The same, before all jobs of their priority; the first of them first.
local function enter_front(queue, ids, groups, priorities)
  for i = #ids, 1, -1 do
    local group, key = groups[i], key_of(queue, groups[i])
    local place, rank = places_before(queue, group, priorities[i])
    redis.call('ZADD', queue.base .. 'grouped', State.whole(rank), ids[i])
    redis.call('ZADD', key, State.whole(priorities[i] * PRIORITY_STEP + place), ids[i])
    if redis.call('ZCARD', key) == 1 then admit(queue, { group }) end
  end
  save_clock(queue)
end

-- The group may start jobs again that it was limited for.
local function reopen(queue, group)
  if redis.call('ZREM', queue.base .. 'groups-limited', group) == 1 then admit(queue, { group }) end
end

-- Jobs that were tried before come back to a group of strict order: nobody overtakes them.
local function enter_strict(queue, back)
  for i = #back, 1, -1 do
    local id, group, priority = unpack(back[i])
    enter_front(queue, { id }, { group }, { priority })
    reopen(queue, group)
  end
end

-- Whether a record was tried before, by its state fields.
local function was_tried(raw)
  if not raw then return false end
  local ok, fields = pcall(cmsgpack.unpack, raw)
  return ok and type(fields) == 'table' and (fields.am ~= nil or fields.as ~= nil)
end

-- Jobs with a record come back to the waiting list: those with a group enter it, at the front of their priority or at its end. Gives the others.
local function enter_own(queue, ids, at_front)
  if #ids == 0 or not are_used(queue) then return ids end
  local others, grouped, groups, priorities, back = {}, {}, {}, {}, {}
  local has_settings = redis.call('EXISTS', queue.base .. 'group-settings') == 1
  for from = 1, #ids, 1000 do
    local some = { unpack(ids, from, math.min(from + 999, #ids)) }
    local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(some))
    local fields = redis.call('HMGET', queue.base .. 'vitals', unpack(some))
    for i, id in ipairs(some) do
      local group, priority = group_of(bodies[i], fields[i])
      if group and has_settings and not at_front and was_tried(fields[i]) and settings_of(queue, group).o then
        back[#back + 1] = { id, group, priority }
      elseif group then
        local n = #grouped + 1
        grouped[n], groups[n], priorities[n] = id, group, priority
      else
        others[#others + 1] = id
      end
    end
  end
  enter_strict(queue, back)
  if #grouped == 0 then return others end
  if at_front then enter_front(queue, grouped, groups, priorities) else enter_end(queue, grouped, groups, priorities) end
  return others
end

-- Waiting jobs leave their groups. bodies: one a job.
local function take_out(queue, ids, bodies)
  local lists, order = {}, {}
  for i, id in ipairs(ids) do
    local group = group_of(bodies[i])
    if group then
      if not lists[group] then lists[group], order[#order + 1] = {}, group end
      WaitingList.append(lists[group], id)
    end
  end
  for _, group in ipairs(order) do
    WaitingList.call_in_chunks('ZREM', key_of(queue, group), lists[group])
    WaitingList.call_in_chunks('ZREM', queue.base .. 'grouped', lists[group])
  end
  local has, empty = with_jobs(queue, order), {}
  for _, group in ipairs(order) do
    if not has[group] then empty[#empty + 1] = group end
  end
  retire(queue, empty)
end

-- Whether a waiting record is in its group: then it has left it.
local function leave_waiting(queue, id, body)
  local group = are_used(queue) and group_of(body)
  if not group or not (redis.call('ZSCORE', key_of(queue, group), id) or redis.call('ZSCORE', queue.base .. 'grouped', id)) then return false end
  take_out(queue, { id }, { body })
  return true
end

-- Adds to, or takes from, the numbers of active jobs. by: {group, jobs, ...}. Where there are many groups one number is followed by so many spaces that the
-- server keeps them in no list, which it would walk for each of them (step/fetched).
local function count_active(queue, by)
  local groups, set, gone = {}, {}, {}
  for i = 1, #by, 2 do groups[#groups + 1] = by[i] end
  for from = 1, #groups, 1000 do
    local to = math.min(from + 999, #groups)
    for i, active in ipairs(redis.call('HMGET', queue.base .. 'group-active', unpack(groups, from, to))) do
      local at = from + i - 1
      local jobs = (tonumber(active) or 0) + by[2 * at]
      if jobs > 0 then
        set[#set + 1], set[#set + 2] = groups[at], State.whole(jobs) .. (at == MANY and NO_LIST or '')
      else
        gone[#gone + 1] = groups[at]
      end
    end
  end
  WaitingList.call_in_chunks('HSET', queue.base .. 'group-active', set)
  WaitingList.call_in_chunks('HDEL', queue.base .. 'group-active', gone)
end

-- Notes that active jobs of a group leave; free_left frees the places of all those together.
local function note_left(queue, group, jobs)
  if type(group) ~= 'string' then return end
  local left = queue.left_groups or {}
  queue.left_groups = left
  left[group] = (left[group] or 0) + jobs
end

local function free_left(queue)
  if not queue.left_groups then return end
  local by, open, has_maxed = {}, {}, redis.call('EXISTS', queue.base .. 'groups-maxed') == 1
  for group, jobs in pairs(queue.left_groups) do
    by[#by + 1], by[#by + 2] = group, -jobs
    if has_maxed and redis.call('ZREM', queue.base .. 'groups-maxed', group) == 1 then open[#open + 1] = group end
  end
  queue.left_groups = nil
  count_active(queue, by)
  admit(queue, open)
end

-- One job leaves by itself.
local function free_place(queue, group)
  note_left(queue, group, 1)
  free_left(queue)
end

local function server_ms()
  local time = redis.call('TIME')
  return math.floor(time[1] * 1000 + time[2] / 1000)
end

-- When the first of the limited groups may start jobs again, by the server's clock; nil: none is limited.
local function next_opening(queue)
  if not are_used(queue) then return nil end
  local first = redis.call('ZRANGE', queue.base .. 'groups-limited', 0, 0, 'WITHSCORES')
  return first[2] and tonumber(first[2])
end

-- Groups whose limit has ended have turns again.
local function open_due(queue, server_ms)
  local due = next_opening(queue)
  if not due or due > server_ms then return end
  local groups = redis.call('ZRANGEBYSCORE', queue.base .. 'groups-limited', '-inf', State.whole(server_ms), 'LIMIT', 0, 1000)
  redis.call('ZREM', queue.base .. 'groups-limited', unpack(groups))
  admit(queue, groups)
end

return {
  STATUSES = STATUSES,
  TURN = TURN,
  USED_UP = USED_UP,
  are_used = are_used,
  expect = expect,
  clock_of = clock_of,
  save_clock = save_clock,
  key_of = key_of,
  starts_key = starts_key,
  count = count,
  read_settings = read_settings,
  settings_of = settings_of,
  starts_of = starts_of,
  is_limited = is_limited,
  store_settings = store_settings,
  turn_length = turn_length,
  with_jobs = with_jobs,
  admit = admit,
  retire = retire,
  reopen = reopen,
  group_of = group_of,
  enter_end = enter_end,
  enter_own = enter_own,
  take_out = take_out,
  leave_waiting = leave_waiting,
  count_active = count_active,
  note_left = note_left,
  free_left = free_left,
  free_place = free_place,
  server_ms = server_ms,
  next_opening = next_opening,
  open_due = open_due,
}
