-- key_limits: jobs that name keys, and how much of each may be used in a window of time, over all jobs and workers of the queue. Each start of the job uses its
-- cost of each of its keys; the window of a key begins with the first start in it, by the server's clock. A job that finds no room in one of them does not
-- start, and uses nothing: it is delayed until there may be room (step/fetched), and then comes to the waiting list as delayed jobs do.
--   key-limit:<key>  string of seven doubles: ends, used, line, booked, next, held, held_until; it expires when it says nothing any more
--     ends, used     the actual window: when it is over, and what was used in it
--     line, booked   the last window in which jobs are due that found no room, and how much of it is theirs. Windows before it are full: who comes anew
--                    stands behind them
--     next           what the window behind the actual one owes to jobs that were due and found no room: they came too early, or many at once
--     held, held_until  what is kept free for one job of several keys. It is held in all of them at once
--   key-line:<key>   sorted set: jobs that are to come, by when (ms of the server); it expires. Some may have been removed: where the last ones were, the line ends
--     before them
-- State fields of such a job: kl {{key, max, duration_ms, cost}, ...}; kr, of one that found no room, or was given back unrun, and has not started since: 1, or
-- held_until where room is held for it; ku {ends, ...}, the windows that its last start used.
-- Why a line of times: a job costs a look when it comes and one when it is due, however many stand before it.
-- Why held: where all of its keys are always used up, never at once, a job would find no room for ever.
local Expiry = require('expiry')
local WaitingList = require('waiting_list')

local FORMAT, BYTES = '<ddddddd', 56
-- No time of ours is so late: who reads one does not know this state, and no key can expire then.
local NEVER_MS = 2 ^ 62
-- A worker takes a moment to come, by which each window begins late. Due times so far apart leave room for it.
local SLACK_MS = 5
-- Jobs at the end of a line that are looked at together, and how often a call does so.
local PAGE, MOST_PAGES = 500, 4

local function key_of(queue, key) return queue.base .. 'key-limit:' .. key end

local function line_of(queue, key) return queue.base .. 'key-line:' .. key end

local function read(raw)
  local ends, used, line, booked, next, held, held_until = 0, 0, 0, 0, 0, 0, 0
  if raw and #raw == BYTES then ends, used, line, booked, next, held, held_until = struct.unpack(FORMAT, raw) end
  if not (ends < NEVER_MS and line < NEVER_MS and held_until < NEVER_MS) then ends, line, held_until = 0, 0, 0 end
  return { ends = ends, used = used, line = line, booked = booked, next = next, held = held, held_until = held_until, life_ms = false,
    coming = false }
end

-- The last jobs of a line were removed where they are delayed no more: it ends before them, and is taken to be full there.
local function mend_line(queue, key, state, now)
  local count = 1
  for _ = 0, MOST_PAGES do
    local last = redis.call('ZREVRANGEBYSCORE', line_of(queue, key), '+inf', '(' .. now, 'WITHSCORES', 'LIMIT', 0, count)
    local ids = {}
    for i = 1, #last, 2 do ids[#ids + 1] = last[i] end
    local gone = 0
    for i, due in ipairs(#ids > 0 and redis.call('ZMSCORE', queue.base .. 'delayed', unpack(ids)) or {}) do
      if due then break end
      gone = i
    end
    if gone > 0 then redis.call('ZREM', line_of(queue, key), unpack(ids, 1, gone)) end
    if gone == 0 and #ids > 0 and count == 1 then return end
    if gone < #ids or #ids < count then
      local due_ms = tonumber(last[2 * gone + 2])
      state.line, state.booked = due_ms or 0, due_ms and math.huge or 0
      return
    end
    count = PAGE
  end
end

-- What is known of the keys, by key, for the whole call.
local function load(queue, limits, now)
  local known, names, keys = queue.key_limits or {}, {}, {}
  queue.key_limits = known
  for _, limit in ipairs(limits) do
    if not known[limit[1]] then
      names[#names + 1], keys[#keys + 1] = limit[1], key_of(queue, limit[1])
    end
  end
  if #keys == 0 then return known end
  for i, raw in ipairs(redis.call('MGET', unpack(keys))) do
    local key, state = names[i], read(raw)
    known[key] = state
    if state.line > now then mend_line(queue, key, state, now) end
  end
  return known
end

-- Whether the actual window, or one that begins now, has room for a job; rank: its kr.
local function has_room(state, limit, rank, now)
  local used, held = now < state.ends and state.used or 0, now < state.held_until and state.held_until ~= rank and state.held or 0
  return used + held + limit[4] <= limit[2]
end

-- Whether none stands in line before a job that comes anew.
local function is_free(state, limit, now)
  return now >= state.line + limit[3] or (now >= state.line and state.booked + limit[4] <= limit[2])
end

local function use(state, limit, rank, now)
  local duration_ms, cost = limit[3], limit[4]
  if now >= state.ends then
    -- two starts in the same millisecond of the clock may be nearly one apart
    state.ends, state.used, state.next = now + duration_ms + 1, 0, 0
  end
  state.used = state.used + cost
  if rank == nil and now < state.line + duration_ms then state.booked = state.booked + cost end
  if state.held_until == rank then state.held_until = 0 end
end

-- When a job may find room in a key that has none, and what its state is once the job is due then.
local function place(state, limit, rank, now)
  local max, duration_ms, cost = limit[2], limit[3], limit[4]
  local is_open = now < state.ends
  local line, booked, next = state.line, state.booked, state.next
  if line <= now or line < state.ends then
    line, booked = is_open and state.ends or now + duration_ms, is_open and next or 0
  end
  if is_open and rank and next + cost <= max then
    return state.ends, line, line == state.ends and booked + cost or booked, next + cost
  end
  if booked + cost > max then
    line, booked = line + duration_ms + SLACK_MS, 0
  end
  return line, line, booked + cost, next
end

-- Holds room for a job in all of its keys, where none is held for another: they all have some when the windows that are full are over. Gives when that is, and
-- until when it is held. One that came too early had it held before.
local function hold(known, limits, rank, now)
  local at, longest = now, 0
  for _, limit in ipairs(limits) do
    local state = known[limit[1]]
    if now < state.held_until and state.held_until ~= rank then return nil end
    if not has_room(state, limit, rank, now) then at = math.max(at, state.ends) end
    longest = math.max(longest, limit[3])
  end
  for _, limit in ipairs(limits) do
    local state = known[limit[1]]
    state.held, state.held_until = limit[4], at + longest
  end
  return at, at + longest
end

-- When a job may find room: the latest of the times that its keys tell. It is in line for that alone, so that it holds nobody back elsewhere.
local function wait(known, id, limits, rank, lacking, now)
  if rank and #limits > 1 then
    local at, held_until = hold(known, limits, rank, now)
    if at then return at, held_until end
  end
  local latest, state, line, booked, next = 0, nil, nil, nil, nil
  for _, limit in ipairs(lacking) do
    local its = known[limit[1]]
    local at, its_line, its_booked, its_next = place(its, limit, rank, now)
    if at > latest then latest, state, line, booked, next = at, its, its_line, its_booked, its_next end
  end
  state.line, state.booked, state.next = line, booked, next
  state.coming = state.coming or {}
  WaitingList.append(state.coming, string.format('%d', latest), id)
  return latest, 1
end

-- The state of each key is kept until it says nothing any more.
local function keep(known, limits, now)
  local longest = 0
  for _, limit in ipairs(limits) do longest = math.max(longest, limit[3]) end
  for _, limit in ipairs(limits) do
    local state = known[limit[1]]
    state.life_ms = math.min(math.max(state.life_ms or 0, math.max(state.ends, state.line, state.held_until, now) - now + longest), NEVER_MS)
  end
end

-- A job with these state fields, which has limits, is about to start: it uses its keys, or, where one of them has no room, nothing. Gives when it may have room
-- then (ms of the server), else nil. Its state fields change.
local function start(queue, id, fields)
  local limits, rank, now = fields.kl, fields.kr, Expiry.server_ms(queue)
  local known, lacking = load(queue, limits, now), {}
  for _, limit in ipairs(limits) do
    local state = known[limit[1]]
    if not (has_room(state, limit, rank, now) and (rank or is_free(state, limit, now))) then lacking[#lacking + 1] = limit end
  end
  local due_ms = nil
  fields.kr = nil
  if #lacking == 0 then
    fields.ku = {}
    for i, limit in ipairs(limits) do
      local state = known[limit[1]]
      use(state, limit, rank, now)
      fields.ku[i] = state.ends
    end
  else
    due_ms, fields.kr = wait(known, id, limits, rank, lacking, now)
  end
  keep(known, limits, now)
  return due_ms
end

-- A job that was taken is given back, and its handler never ran: what it used of windows that are not over is there for others, and it stands in no line again.
-- Its state fields change.
local function give_back(queue, fields)
  local limits, windows, now = fields.kl, fields.ku, Expiry.server_ms(queue)
  if not (limits and windows) or fields.df then return end
  local known = load(queue, limits, now)
  for i, limit in ipairs(limits) do
    local state = known[limit[1]]
    if now < state.ends and state.ends == windows[i] then
      state.used = state.used - limit[4]
      -- a window begins with a start
      if state.used == 0 then state.ends = 0 end
    end
  end
  fields.kr, fields.ku = 1, nil
  keep(known, limits, now)
end

-- Writes what the call has changed.
local function save(queue)
  for key, state in pairs(queue.key_limits or {}) do
    local raw = struct.pack(FORMAT, state.ends, state.used, state.line, state.booked, state.next, state.held, state.held_until)
    -- of some nothing is known
    if state.life_ms > 0 then redis.call('SET', key_of(queue, key), raw, 'PX', string.format('%d', state.life_ms)) end
    if state.coming then
      local past = redis.call('ZCOUNT', line_of(queue, key), '-inf', Expiry.server_ms(queue))
      if past > 0 then redis.call('ZREMRANGEBYRANK', line_of(queue, key), 0, past - 1) end
      WaitingList.call_in_chunks('ZADD', line_of(queue, key), state.coming)
      redis.call('PEXPIRE', line_of(queue, key), string.format('%d', state.life_ms))
    end
  end
end

return {
  start = start,
  give_back = give_back,
  save = save,
}
