-- frame: 1 to 64 plain jobs in one log entry, numbered from first: entry id <first>-<n>, field f, value the MessagePack values
-- timestamp, options (JSON text), then name (nil = as the job before) and data (JSON text) a job.
-- A frame is waiting (behind the cursor), taken by one worker (hash takes), or finished; a job that needs more gets a record.
--   takes  first -> {processed_on, chars, owner, worker_name}; chars: 1 active, k kept in a run, 0 gone; '' = all active
--   frames first -> number of its jobs kept in runs, when that is neither none nor all
--   holes  first -> chars of a waiting frame: 1 plain, r has a record, 0 gone
local function frame_blob(first, n)
  local id = entry_id(first, n)
  local entry = redis.call('XRANGE', base .. 'log', id, id)[1]
  return entry and entry[2][2] or ''
end

-- A function that gives the record body of the frame's i-th job, i from 0. Call it with i counting up. Of a job that
-- cannot be read the body has fewer values, and cannot be read either.
local function frame_bodies(blob)
  local parts = { pcall(cmsgpack.unpack, blob) }
  if not parts[1] then
    local n, at = 1, 0
    while at >= 0 and at < #blob do
      local ok, following, value = pcall(cmsgpack.unpack_one, blob, at)
      if not ok then break end
      n = n + 1
      parts[n], at = value, following
    end
    -- the error's text stands where nothing was read
    if n == 1 then parts[2] = nil end
  end
  local name, named = nil, -1
  return function(i)
    while named < i do
      named = named + 1
      name = parts[4 + 2 * named] or name
    end
    return cmsgpack.pack({ parts[2], parts[3], name, parts[5 + 2 * i] })
  end
end

local function load_take(first)
  local raw = redis.call('HGET', base .. 'takes', whole(first))
  local ok, take = pcall(cmsgpack.unpack, raw or '')
  if ok and type(take) == 'table' and type(take[2]) == 'string' and type(take[3]) == 'string' then return take end
  -- nobody holds what cannot be read
  return raw and { 0, '', '', '' }
end

local function replace_chars(chars, offset, with)
  return chars:sub(1, offset) .. with .. chars:sub(offset + #with + 1)
end

-- Stores a take after some of its jobs left it; the last one to leave ends it.
local function store_take(first, n, take)
  local chars = take[2]
  if chars:find('1', 1, true) then
    redis.call('HSET', base .. 'takes', whole(first), cmsgpack.pack(take))
    return
  end
  redis.call('HDEL', base .. 'takes', whole(first))
  local _, kept = chars:gsub('k', '')
  if kept == 0 then
    redis.call('XDEL', base .. 'log', entry_id(first, n))
  elseif kept < n then
    redis.call('HSET', base .. 'frames', whole(first), kept)
  end
end

-- count jobs of a frame, from the job number on, are no longer kept in a run.
local function forget_kept(first, n, number, count)
  local take = load_take(first)
  if take then
    take[2] = replace_chars(take[2], number - first, string.rep('0', count))
    store_take(first, n, take)
    return
  end
  local kept = (tonumber(redis.call('HGET', base .. 'frames', whole(first)) or n) or n) - count
  if kept > 0 then
    redis.call('HSET', base .. 'frames', whole(first), kept)
  else
    redis.call('HDEL', base .. 'frames', whole(first))
    redis.call('XDEL', base .. 'log', entry_id(first, n))
  end
end
