-- frame: 1 to 64 plain jobs in one log entry, numbered from first: entry id <first>-<n>, field f, value the MessagePack values
-- timestamp, options (JSON text), then name (nil = as the job before) and data (JSON text) a job.
-- Why frames: of 6,400 tiny jobs added at once, each takes 14 bytes while it waits and 0.02 commands to add; a record takes 97, and 1.0.
-- A frame is waiting (behind the cursor), taken by one worker (hash takes), or finished; a job that needs more gets a record.
-- A frame of children begins with one value more, its parent header: {ids, base of their parents' queue, policy (states/parents), ids of the parents,
-- how many children each of them has here}. The id of such a job is ids and its number, twelve hexadecimal digits: a UUID.
-- A long frame of plain jobs lies apart, in a key of its own, and in the log stands a stub of it (jobs/stub). Its
-- producer writes the key, and workers and getters read it, by plain commands; scripts do so only where one of its jobs goes another way.
-- Why apart: Lua looks at each byte of a text, and copies it, which costs ten times what it takes to store and to read it.
--   apart:<first>  the frame
--   stash:<client>:<slot>:<number>:<place>  what it is until it is added, for a while (add_frames)
--   takes  first -> {processed_on, chars, owner, worker_name, claim, parent header}; chars: 1 active, k kept in a run, 0 gone; '' = all active;
--          claim: below; parent header: of children only
--   frames first -> number of its jobs kept in runs, when that is neither none nor all
--   holes  first -> chars of a waiting frame: 1 plain, r has a record, 0 gone
local State = require('state')
local Stub = require('stub')

-- What a plain frame begins with, and a record's body.
local TIME, ARRAY_OF_FOUR = 207, '\148'

-- Bytes of a frame that lies apart; nil when this is no stub of one.
local function bytes_apart(queue, blob)
  if queue.apart == 0 then return nil end
  return Stub.bytes(blob)
end

local function key_apart(queue, first)
  return queue.base .. 'apart:' .. State.whole(first)
end

-- The frame of which this stands in the log.
local function whole_blob(queue, first, blob)
  if not bytes_apart(queue, blob) then return blob end
  local found = redis.pcall('GET', key_apart(queue, first))
  return type(found) == 'string' and found or ''
end

-- A frame has left the log; first: nil when it was no frame.
local function drop_apart(queue, first)
  if first and queue.apart > 0 then queue.apart = queue.apart - redis.call('UNLINK', key_apart(queue, first)) end
end

local function drop_frame(queue, first, n)
  redis.call('XDEL', queue.base .. 'log', State.entry_id(first, n))
  drop_apart(queue, first)
end

-- Each taking of jobs, by one step of one worker, is a claim: a number that the worker never gives twice. What ends or moves a job names
-- the claim under which it was run, so that it does nothing to a job that has left since, and was taken again or replaced by another
-- of its id. A job that was taken manually has an owner of its own instead (states/lock); ANY_CLAIM is for what has checked that.
local ANY_CLAIM = 0

local function is_claim(held, claim)
  return held == claim or claim == ANY_CLAIM
end

-- A stored holder, or nil: there is none, or it cannot be read.
local function read_holder(raw)
  local ok, holder = pcall(cmsgpack.unpack, raw or '')
  local sound = ok and type(holder) == 'table' and type(holder[1]) == 'number' and type(holder[2]) == 'string'
    and type(holder[3]) == 'string' and type(holder[4]) == 'string'
  return sound and holder or nil
end

-- Stores a holder after some of its jobs left it; the last one to leave ends it.
local function store_holder(queue, first, n, holder)
  local chars = holder[2]
  if chars:find('1', 1, true) then
    redis.call('HSET', queue.base .. 'takes', State.whole(first), cmsgpack.pack(holder))
    return
  end
  redis.call('HDEL', queue.base .. 'takes', State.whole(first))
  local _, kept = chars:gsub('k', '')
  if kept == 0 then
    drop_frame(queue, first, n)
  elseif kept < n then
    redis.call('HSET', queue.base .. 'frames', State.whole(first), kept)
  end
end

local function frame_blob(queue, first, n)
  local id = State.entry_id(first, n)
  local entry = redis.call('XRANGE', queue.base .. 'log', id, id)[1]
  return entry and entry[2][2] or ''
end

-- Whether a value read from a frame or a holder is what a frame of children begins with.
local function is_header(header)
  if type(header) ~= 'table' or type(header[1]) ~= 'string' or type(header[2]) ~= 'string' or type(header[3]) ~= 'string'
    or type(header[4]) ~= 'table' or type(header[5]) ~= 'table' then return false end
  for i = 1, math.max(#header[4], #header[5]) do
    if type(header[4][i]) ~= 'string' or type(header[5][i]) ~= 'number' then return false end
  end
  return true
end

-- The id of the job of this number. ids: what those of children begin with; nil for plain jobs.
local function id_in(ids, number)
  return ids and string.format('%s%012x', ids, number) or State.whole(number)
end

-- The parent (pa, states/parents) of the job at this place of a frame; nil when it is no frame of children.
local function parent_in(header, first, offset)
  if not header then return nil end
  local parents, counts = header[4], header[5]
  for i = 1, #parents do
    if offset < counts[i] then return { header[2], parents[i], header[3], first, counts[i] } end
    first, offset = first + counts[i], offset - counts[i]
  end
end

-- A function that gives of the frame's i-th job, i from 0: timestamp, options, name, data. Call it with i counting up. Of a job that cannot be read some of
-- these are missing.
local function values_in(blob)
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
  -- a parent header is no part of a job
  local at, name, named = type(parts[2]) == 'table' and 3 or 2, nil, -1
  return function(i)
    while named < i do
      named = named + 1
      name = parts[at + 2 + 2 * named] or name
    end
    return parts[at], parts[at + 1], name, parts[at + 3 + 2 * i]
  end
end

-- The same, by what stands in the log.
local function frame_values(queue, first, blob)
  return values_in(whole_blob(queue, first, blob))
end

-- A function that gives the record body of the frame's i-th job, i from 0. Call it with i counting up. Of a job that
-- cannot be read the body has fewer values, and cannot be read either. blob: what stands in the log; n: number of its jobs, if the caller knows it.
local function frame_bodies(queue, first, blob, n)
  blob = whole_blob(queue, first, blob)
  -- the values of a plain job that is alone are those of its record: Lua need not look at each byte of its data again, twice
  if n == 1 and blob:byte(1) == TIME then return function() return ARRAY_OF_FOUR .. blob end end
  local values_of = values_in(blob)
  return function(i) return cmsgpack.pack({ values_of(i) }) end
end

-- The same for a getter, which reads a frame that lies apart by a plain command: where a body lies there stands for it, {first, i, bytes of the
-- frame}.
local function given_bodies(queue, first, blob, n)
  local bytes = bytes_apart(queue, blob)
  if not bytes then return frame_bodies(queue, first, blob, n) end
  return function(i) return cmsgpack.pack({ first, i, bytes }) end
end

local function load_holder(queue, first)
  local raw = redis.call('HGET', queue.base .. 'takes', State.whole(first))
  -- nobody holds what cannot be read
  return read_holder(raw) or (raw and { 0, '', '', '', 0 })
end

local function replace_chars(chars, offset, with)
  return chars:sub(1, offset) .. with .. chars:sub(offset + #with + 1)
end

-- count jobs of a frame, from the job number on, are no longer kept in a run.
local function forget_kept(queue, first, n, number, count)
  local holder = load_holder(queue, first)
  if holder then
    holder[2] = replace_chars(holder[2], number - first, string.rep('0', count))
    store_holder(queue, first, n, holder)
    return
  end
  local kept = (tonumber(redis.call('HGET', queue.base .. 'frames', State.whole(first)) or n) or n) - count
  if kept > 0 then
    redis.call('HSET', queue.base .. 'frames', State.whole(first), kept)
  else
    redis.call('HDEL', queue.base .. 'frames', State.whole(first))
    drop_frame(queue, first, n)
  end
end

-- nil for plain jobs, and for what cannot be read.
local function header_of(blob)
  -- an array of five
  if blob:byte(1) ~= 149 then return nil end
  local ok, _, header = pcall(cmsgpack.unpack_one, blob)
  return ok and is_header(header) and header or nil
end

local function header_in(holder)
  return holder[6] and is_header(holder[6]) and holder[6] or nil
end

return {
  ANY_CLAIM = ANY_CLAIM,
  is_claim = is_claim,
  read_holder = read_holder,
  store_holder = store_holder,
  bytes_apart = bytes_apart,
  key_apart = key_apart,
  drop_apart = drop_apart,
  drop_frame = drop_frame,
  whole_blob = whole_blob,
  frame_blob = frame_blob,
  id_in = id_in,
  parent_in = parent_in,
  frame_values = frame_values,
  frame_bodies = frame_bodies,
  given_bodies = given_bodies,
  load_holder = load_holder,
  replace_chars = replace_chars,
  forget_kept = forget_kept,
  header_of = header_of,
  header_in = header_in,
}
