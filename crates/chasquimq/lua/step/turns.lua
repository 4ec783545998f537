-- turns: which jobs of which groups a step starts (states/groups). Each group has a turn, and then waits until the others have had theirs; a group of weight
-- three has three. Within its turns a group starts no more than its limits let: group.concurrency, of jobs that are active, and group.limit, of
-- starts in a window. What was set for the group comes before what the worker says.
-- rules: what the worker says: {concurrency (0 = none), max (starts a window; 0 = none), duration_ms, fair (1: jobs without a group have turns, too), apart (1:
-- a step takes jobs of one group, or such as have none)}, or 0.
local Fetched = require('fetched')
local GroupOrder = require('group_order')
local Groups = require('groups')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- So many groups are looked at together.
local PAGE = 256
local NO_RULES, NO_SETTINGS = { 0, 0, 0, 0, 0 }, {}

-- One of the groups: {name, turn, length (of a turn), room (jobs that may start), limit (starts a window, or nil), window_ms, status (what it is when there
-- is no more room), count (jobs that start), ids (of them), held_ms (when the job is due that holds it back, epoch ms of the caller)}.

-- What is known of these groups: settings, active jobs and starts, in columns.
local function read_columns(queue, names)
  local keys = {}
  for i, name in ipairs(names) do keys[i] = Groups.starts_key(queue, name) end
  return redis.call('HMGET', queue.base .. 'group-settings', unpack(names)), redis.call('HMGET', queue.base .. 'group-active', unpack(names)),
    redis.call('MGET', unpack(keys))
end

-- Notes that no more than `room` jobs may start.
local function bound(group, room, status)
  if room < group.room then group.room, group.status = room, status end
end

-- What limits each of these groups, and how long its turns are.
local function bound_all(queue, groups, names, rules)
  local settings, active, starts = read_columns(queue, names)
  for i, group in ipairs(groups) do
    local own = settings[i] and Groups.read_settings(settings[i]) or NO_SETTINGS
    local concurrency, started = own.c or (rules[1] > 0 and rules[1]), tonumber(starts[i]) or 0
    group.length = Groups.turn_length(own)
    group.limit, group.window_ms = own.m or (rules[2] > 0 and rules[2]), own.m and own.d or rules[3]
    if concurrency then bound(group, concurrency - (tonumber(active[i]) or 0), 'maxed') end
    if group.limit or started >= Groups.USED_UP then bound(group, (group.limit or 0) - started, 'limited') end
    group.held_ms = own.o and GroupOrder.held_until(queue, group.name)
    if group.held_ms then bound(group, 0, 'limited') end
  end
end

-- may_limit: something may limit one of them.
local function look_at(queue, ring, rules, may_limit)
  local names, groups = {}, {}
  for i = 1, #ring, 2 do
    local at, name = (i + 1) / 2, ring[i]
    names[at] = name
    groups[at] = { name = name, turn = tonumber(ring[i + 1]), length = Groups.TURN, room = math.huge, count = 0, ids = false, at = 0, limit = false,
      window_ms = false, status = false, held_ms = false }
  end
  if may_limit then bound_all(queue, groups, names, rules) end
  return groups
end

-- A group enters a heap, of which the first has the next turn. Most come in their order.
local function push(heap, group)
  local at = #heap + 1
  while at > 1 do
    local above = math.floor(at / 2)
    if heap[above].turn <= group.turn then break end
    heap[at], at = heap[above], above
  end
  heap[at] = group
end

local function pop_first(heap)
  local first, last, at = heap[1], heap[#heap], 1
  heap[#heap] = nil
  local count = #heap
  if count == 0 then return first end
  while 2 * at <= count do
    local child = 2 * at
    if child < count and heap[child + 1].turn < heap[child].turn then child = child + 1 end
    if heap[child].turn >= last.turn then break end
    heap[at], at = heap[child], child
  end
  heap[at] = last
  return first
end

-- Gives up to `room` jobs to the groups, turn by turn: the groups in the order of their turns. Their next turns are noted. last: other groups may have
-- turns behind that one; others: the jobs without a group, where these have turns.
local function draw(queue, groups, room, last, others)
  -- those that had a turn wait for the next one in the heap
  local again, drawn, next_at, clock = { others }, {}, 1, Groups.clock_of(queue)
  while #drawn < room do
    while groups[next_at] and groups[next_at].room <= 0 do next_at = next_at + 1 end
    local group, first = groups[next_at], again[1]
    if not (group or first) then break end
    if not group or (first and first.turn < group.turn) then
      if first.turn > last then break end
      group = pop_first(again)
    else
      next_at = next_at + 1
    end
    drawn[#drawn + 1] = group
    clock[1] = math.max(clock[1], group.turn)
    group.count, group.turn = group.count + 1, group.turn + group.length
    if group.count < group.room then push(again, group) end
  end
  return drawn
end

-- Notes the starts of a group that has a limit.
local function count_starts(queue, group)
  local key, taken = Groups.starts_key(queue, group.name), #group.ids
  local starts = redis.pcall('INCRBY', key, taken)
  -- in the place of what is no number
  if type(starts) == 'table' then redis.call('SET', key, taken) end
  if type(starts) == 'table' or starts == taken then redis.call('PEXPIRE', key, State.whole(group.window_ms)) end
end

-- Takes out what was drawn of a group.
local function pop(queue, group)
  local key = Groups.key_of(queue, group.name)
  -- cheaper than ZPOPMIN, which gives scores that nobody needs
  group.ids = redis.call('ZRANGE', key, 0, group.count - 1)
  redis.call('ZREMRANGEBYRANK', key, 0, group.count - 1)
  if group.limit and #group.ids > 0 then count_starts(queue, group) end
end

-- Says where groups go that have started jobs, or must not.
local function settle(queue, groups, step)
  local names, leave, ring, maxed, limited = {}, {}, {}, {}, {}
  for i, group in ipairs(groups) do names[i] = group.name end
  local has = Groups.with_jobs(queue, names)
  for _, group in ipairs(groups) do
    local name = group.name
    if not has[name] then
      leave[#leave + 1] = name
    elseif #group.ids < group.room then
      ring[#ring + 1], ring[#ring + 2] = State.whole(group.turn), name
    elseif group.status == 'maxed' then
      leave[#leave + 1] = name
      maxed[#maxed + 1], maxed[#maxed + 2] = State.whole(Groups.clock_of(queue)[2]), name
    else
      leave[#leave + 1] = name
      -- the server drops a key in the millisecond after its last one
      local ends_ms = step.server_ms + math.max(redis.call('PTTL', Groups.starts_key(queue, name)), 0) + 1
      if group.held_ms then ends_ms = math.max(ends_ms, group.held_ms - step.ahead_ms) end
      limited[#limited + 1], limited[#limited + 2] = State.whole(ends_ms), name
    end
  end
  WaitingList.call_in_chunks('ZREM', queue.base .. 'groups', leave)
  WaitingList.call_in_chunks('ZADD', queue.base .. 'groups', ring)
  WaitingList.call_in_chunks('ZADD', queue.base .. 'groups-maxed', maxed)
  WaitingList.call_in_chunks('ZADD', queue.base .. 'groups-limited', limited)
end

-- Takes what was drawn out of the groups: ids in the order of the turns, and the group of each.
local function take_out(queue, drawn, groups, step)
  local looked, active, ids, group_of = {}, {}, {}, {}
  for _, group in ipairs(groups) do
    if group.count > 0 or group.room <= 0 then
      if group.count > 0 then pop(queue, group) else group.ids = {} end
      looked[#looked + 1] = group
      if #group.ids > 0 then active[#active + 1], active[#active + 2] = group.name, #group.ids end
    end
  end
  settle(queue, looked, step)
  if #active > 0 then Groups.count_active(queue, active) end
  for _, group in ipairs(drawn) do
    local id = group.ids and group.ids[group.at + 1]
    if id then
      group.at = group.at + 1
      ids[#ids + 1] = id
      group_of[id] = group.name
    end
  end
  WaitingList.call_in_chunks('ZREM', queue.base .. 'grouped', ids)
  return ids, group_of
end

-- Jobs that did not start, as their record is lost, or a key of theirs has no room (rules/key_limits), hold no place, and count as no start.
local function free_unstarted(queue, ids, group_of)
  for _, id in ipairs(ids) do
    local group = group_of[id]
    if queue.fetched.later[id] or redis.call('HEXISTS', queue.base .. 'jobs', id) == 0 then
      Groups.note_left(queue, group, 1)
      if Groups.starts_of(queue, group) > 0 then redis.call('INCRBY', Groups.starts_key(queue, group), -1) end
      Groups.reopen(queue, group)
    end
  end
  Groups.free_left(queue)
end

-- Without those that are not to be taken in advance: they go back.
local function without_stalled(queue, ids, group_of)
  local fit, back = {}, {}
  for i, fields in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(ids))) do
    local list = Stored.is_taken_late(fields) and back or fit
    list[#list + 1] = ids[i]
  end
  if #back == 0 then return ids end
  for _, id in ipairs(back) do Groups.note_left(queue, group_of[id], 1) end
  Groups.free_left(queue)
  Groups.enter_own(queue, back, true)
  return fit
end

-- Takes up to `room` jobs. Gives whether others may be left. in_advance: they start later. fairly: {others (draw), take (take_fairly)}, or nil.
local function take_some(queue, room, limits, step, fairly, in_advance)
  local count, fetched = limits.rules[5] == 1 and 1 or math.min(room, PAGE), queue.fetched
  local ring = redis.call('ZRANGE', queue.base .. 'groups', 0, count - 1, 'WITHSCORES')
  if #ring == 0 then return false end
  local groups, last = look_at(queue, ring, limits.rules, limits.may_limit), limits.rules[5] == 0 and #ring == 2 * count and tonumber(ring[#ring]) or math.huge
  local drawn = draw(queue, groups, room, last, fairly and fairly.others)
  if fairly and fairly.others.count > 0 then fairly.take(fairly.others.count) end
  local ids, group_of = take_out(queue, drawn, groups, step)
  local fit = in_advance and #ids > 0 and without_stalled(queue, ids, group_of) or ids
  if #fit > 0 then
    local taken = fetched.taken
    fetched.group_of = group_of
    Fetched.take_records(queue, fit, step)
    fetched.group_of = false
    if fetched.taken - taken < #fit then free_unstarted(queue, fit, group_of) end
  end
  return #fit == #ids
end

local function rules_of(step)
  return type(step.group_rules) == 'table' and step.group_rules or NO_RULES
end

-- What the worker says, and whether something may limit a group.
local function limits_of(queue, step)
  local rules = rules_of(step)
  local may_limit = rules[1] > 0 or rules[2] > 0 or redis.call('EXISTS', queue.base .. 'group-settings', queue.base .. 'group-held') > 0
  return { rules = rules, may_limit = may_limit }
end

-- Jobs that may be read at once, of those that are wanted still.
local function room_for(queue, wanted)
  local first = queue.fetched.taken < Fetched.FIRST_RECORDS and redis.call('ZRANGE', queue.base .. 'groups', 0, 0)[1]
  local id = first and redis.call('ZRANGE', Groups.key_of(queue, first), 0, 0)[1] or ''
  return math.min(wanted, Fetched.records_chunk(queue, id, wanted))
end

-- Whether the jobs without a group have turns; and whether a step takes jobs of one group.
local function are_fair(step) return rules_of(step)[4] == 1 end

local function are_apart(step) return rules_of(step)[5] == 1 end

-- Takes jobs turn by turn where those without a group have turns as a group has: take_others(count) takes so many of them. Ends where there are none of either
-- kind: what may be taken still is taken as by others.
local function take_fairly(queue, want, step, take_others)
  local fetched, limits, clock = queue.fetched, limits_of(queue, step), Groups.clock_of(queue)
  local before
  repeat
    before = fetched.taken
    local has_others = queue.waiting > 0 or redis.call('EXISTS', queue.base .. 'prioritized') == 1
    local room = has_others and before < want and room_for(queue, want - before) or 0
    -- after a while without a turn they are as a group that comes anew
    local turn = clock[3] > clock[1] and clock[3] or clock[1] + Groups.TURN
    local others = { turn = turn, length = Groups.TURN, room = math.huge, count = 0, ids = false }
    if room == 0 or not take_some(queue, room, limits, step, { others = others, take = take_others }) then break end
    clock[3] = others.turn
  until fetched.taken == before
  Groups.save_clock(queue)
end

-- Takes up to `want` jobs, and in advance up to `most`, together with those that were taken before. None is taken in advance where something may limit a
-- group. step.group_rules: rules.
local function take(queue, want, most, step)
  local fetched, before, limits = queue.fetched, queue.fetched.taken, limits_of(queue, step)
  local is_apart = limits.rules[5] == 1
  if limits.may_limit or is_apart then most = want end
  while fetched.taken < most do
    local in_advance = fetched.taken >= want
    local room = in_advance and (fetched.bytes < step.max_bytes and math.min(most - fetched.taken, Fetched.surplus_chunk(queue)) or 0)
      or room_for(queue, want - fetched.taken)
    if room == 0 or not take_some(queue, room, limits, step, nil, in_advance) or (is_apart and fetched.taken > before) then break end
  end
  if fetched.taken > before then Groups.save_clock(queue) end
end

return {
  are_fair = are_fair,
  are_apart = are_apart,
  take_fairly = take_fairly,
  take = take,
}
