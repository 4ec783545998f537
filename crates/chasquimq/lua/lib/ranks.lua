-- ranks: ids of a state by rank, as BullMQ ranks them. Ascending: waiting in processing order, active by start, sets by score.

-- Start and stop (from 0, negative from the end, both included) as Redis reads them, within a length. nil when empty.
local function clamp_range(start, stop, length)
  if start < 0 then start = math.max(length + start, 0) end
  if stop < 0 then stop = length + stop end
  stop = math.min(stop, length - 1)
  if start > stop then return nil end
  return start, stop
end

-- Ids of a log entry that still wait.
local function waiting_ids(entry, stale)
  local ids = {}
  if entry[2][1] == 'f' then
    local first, n = entry[1]:match('^(%d+)-(%d+)$')
    first, n = tonumber(first), tonumber(n)
    local holes = S.holes > 0 and redis.call('HGET', base .. 'holes', whole(first))
    for i = 0, n - 1 do
      if not holes or holes:sub(i + 1, i + 1) ~= '0' then ids[#ids + 1] = whole(first + i) end
    end
    return ids
  end
  for _, id in ipairs(cmsgpack.unpack(entry[2][2])) do
    if (stale[id] or 0) > 0 then stale[id] = stale[id] - 1 else ids[#ids + 1] = id end
  end
  return ids
end

local function stale_references()
  local stale = {}
  if S.gone > 0 then
    local flat = redis.call('HGETALL', base .. 'gone')
    for i = 1, #flat, 2 do stale[flat[i]] = tonumber(flat[i + 1]) end
  end
  return stale
end

-- Ranks from..to of the line, from its head.
local function waiting_range(from, to)
  local ids, rank = {}, 0
  local front = redis.call('LRANGE', base .. 'front', 0, to)
  for i = from + 1, #front do ids[#ids + 1] = front[i] end
  rank = redis.call('LLEN', base .. 'front')
  local stale = stale_references()
  local after = entry_id(S.cursor_ms, S.cursor_seq)
  while rank <= to do
    local entries = redis.call('XRANGE', base .. 'log', '(' .. after, '+', 'COUNT', 16)
    if #entries == 0 then break end
    for _, entry in ipairs(entries) do
      for _, id in ipairs(waiting_ids(entry, stale)) do
        if rank >= from and rank <= to then ids[#ids + 1] = id end
        rank = rank + 1
      end
      after = entry[1]
    end
  end
  return ids
end

-- Ranks from..to of the completed set; runs hold several jobs.
local function completed_range(from, to, ascending)
  local ids, rank, position = {}, 0, 0
  while rank <= to do
    local members = redis.call(ascending and 'ZRANGE' or 'ZREVRANGE', base .. 'completed', position, position + 99)
    if #members == 0 then break end
    local runs = redis.call('HMGET', base .. 'runs', unpack(members))
    for i, member in ipairs(members) do
      local count = runs[i] and cmsgpack.unpack(runs[i])[1] or 1
      for j = 0, count - 1 do
        if rank >= from and rank <= to then
          ids[#ids + 1] = runs[i] and whole(tonumber(member) + (ascending and j or count - 1 - j)) or member
        end
        rank = rank + 1
      end
    end
    position = position + #members
  end
  return ids
end

-- Active jobs in the order they became active; jobs of one fetch by number.
local function active_ids()
  local jobs = {}
  local takes = redis.call('HGETALL', base .. 'takes')
  for i = 1, #takes, 2 do
    local first, take = tonumber(takes[i]), cmsgpack.unpack(takes[i + 1])
    local n = 0
    if take[2] == '' then
      local entry = redis.call('XRANGE', base .. 'log', entry_id(first, 0), '+', 'COUNT', 1)[1]
      n = entry and tonumber(entry[1]:match('%-(%d+)$')) or 0
    else
      n = #take[2]
    end
    for offset = 0, n - 1 do
      if take[2] == '' or take[2]:sub(offset + 1, offset + 1) == '1' then
        jobs[#jobs + 1] = { take[1], first + offset, whole(first + offset) }
      end
    end
  end
  local records = redis.call('HGETALL', base .. 'active')
  for i = 1, #records, 2 do
    jobs[#jobs + 1] = { cmsgpack.unpack(records[i + 1])[1], number_of(records[i]), records[i] }
  end
  table.sort(jobs, function(a, b)
    if a[1] ~= b[1] then return a[1] < b[1] end
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3]
  end)
  local ids = {}
  for _, job in ipairs(jobs) do ids[#ids + 1] = job[3] end
  return ids
end

local function reversed(ids)
  local result = {}
  for i = #ids, 1, -1 do result[#result + 1] = ids[i] end
  return result
end

-- Ids of one state from rank start to stop. Descending ranks count from the other end.
local function ids_by_rank(type, start, stop, ascending)
  if type == 'waiting' or type == 'wait' then
    local from, to = clamp_range(start, stop, S.waiting)
    if not from then return {} end
    if ascending then return waiting_range(from, to) end
    return reversed(waiting_range(S.waiting - 1 - to, S.waiting - 1 - from))
  elseif type == 'active' then
    local ids = active_ids()
    if not ascending then ids = reversed(ids) end
    local from, to = clamp_range(start, stop, #ids)
    local some = {}
    for i = from or 0, from and to or -1 do some[#some + 1] = ids[i + 1] end
    return some
  elseif type == 'completed' then
    local from, to = clamp_range(start, stop, S.completed)
    if not from then return {} end
    return completed_range(from, to, ascending)
  elseif type == 'failed' or type == 'delayed' or type == 'prioritized' or type == 'waiting-children' then
    return redis.call(ascending and 'ZRANGE' or 'ZREVRANGE', base .. type, start, stop)
  end
  return {}
end
