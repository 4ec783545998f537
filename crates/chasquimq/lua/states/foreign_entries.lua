-- foreign_entries: entries of the log that we did not write. Each becomes a waiting record, unreadable-<entry id>, whose body is what the entry held:
-- the worker that takes it cannot read it, and fails it for that, where operators see it.

-- A log entry's id that another program chose is above all that we will write: those at the end of the log are moved, and the log
-- goes on where it was.
local function is_stray(entry)
  local field, seq = entry[2][1], tonumber(entry[1]:match('%d+$'))
  if field == 'f' then return seq < 1 or seq > 64 end
  return field ~= 'r' or seq <= 1099511627776
end

-- Gives the id of the record.
local function set_aside(queue, entry)
  local id = 'unreadable-' .. entry[1]
  while redis.call('HSETNX', queue.base .. 'jobs', id, cmsgpack.pack(entry[2])) == 0 do id = id .. '-' end
  redis.call('XDEL', queue.base .. 'log', entry[1])
  return id
end

-- The ids in an entry of references that is truncated: those that are there.
local function readable_ids(blob)
  -- the head of an array is one byte, or three
  local ids, at = {}, blob:byte() == 220 and 3 or 1
  while at >= 0 and at < #blob do
    local ok, following, id = pcall(cmsgpack.unpack_one, blob, at)
    if not ok or type(id) ~= 'string' then break end
    ids[#ids + 1], at = id, following
  end
  return ids
end

local function last_entry(queue)
  return redis.call('XREVRANGE', queue.base .. 'log', '+', '-', 'COUNT', 1)[1]
end

-- Nothing but a new log takes a lower id again.
local function write_log_anew(queue)
  local old, after = queue.base .. 'log:old', '-'
  redis.call('RENAME', queue.base .. 'log', old)
  repeat
    local entries = redis.call('XRANGE', old, after, '+', 'COUNT', 16)
    for _, entry in ipairs(entries) do
      redis.call('XADD', queue.base .. 'log', entry[1], unpack(entry[2]))
      after = '(' .. entry[1]
    end
  until #entries == 0
  redis.call('UNLINK', old)
end

-- Makes room for an entry that the log did not take.
local function clear_end_of_log(queue, id, refused)
  if not refused.err:find('XADD', 1, true) then return end
  local last = last_entry(queue)
  while last and is_stray(last) do
    redis.call('RPUSH', queue.base .. 'front', set_aside(queue, last))
    queue.waiting = queue.waiting + 1
    last = last_entry(queue)
  end
  local ms, seq = id:match('(%d+)-(%d+)')
  local last_ms, last_seq = (last and last[1] or '0-0'):match('(%d+)-(%d+)')
  local ahead = tonumber(ms) - tonumber(last_ms)
  if ahead > 0 or (ahead == 0 and tonumber(seq) > tonumber(last_seq)) then write_log_anew(queue) end
end

return {
  set_aside = set_aside,
  readable_ids = readable_ids,
  clear_end_of_log = clear_end_of_log,
}
