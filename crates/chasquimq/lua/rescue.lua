-- rescue: active -> front of waiting, for jobs that find_lost found, if they still are where they were; a bounded step a call. The last
-- of them go first, so that in the end all head the line in their order.
-- KEYS    base (also: state meta jobs vitals traces active log front takes frames events trims wake lease:<owner>)
-- ARGV    now_ms (epoch ms), max_stalled, owner ('' = those of whoever has no lease), items (MessagePack: {id, claim} of a record,
--         {first, offset (-1 = the whole frame), claim} of a frame, in the order in which they are to wait), is_last (1: none come after these)
-- RETURNS {left (items, from the first, that are for another call), {id, ...} of the jobs brought back}
-- ERRORS  none      EVENTS waiting, stalled      COST O(items), or 1 MiB
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, and it goes in steps)
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, max_stalled, owner = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local items, is_last = cmsgpack.unpack(ARGV[4]), ARGV[5] == '1'
local MOST_BYTES = 1048576

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/frame
-- @include lib/held

local alive = {}
local function is_lost(held, claim)
  if not is_claim(held_claim(held), claim) then return false end
  if owner ~= '' then return held[3] == owner end
  if alive[held[3]] == nil then alive[held[3]] = redis.call('EXISTS', base .. 'lease:' .. held[3]) == 1 end
  return not alive[held[3]]
end

-- The frames that items name, by first number; false: nobody holds it.
local frames, touched, bytes = {}, {}, 0

local function frame_of(first)
  if frames[first] == nil then
    local raw = redis.call('HGET', base .. 'takes', whole(first))
    frames[first] = false
    if raw then
      local _, take = held_take(first, raw)
      local n, blob = held_frame(first, take)
      bytes = bytes + #blob
      frames[first] = { take = take, n = n, body_of = frame_bodies(blob), brood = brood_in(take),
        chars = take[2] == '' and string.rep('1', n) or take[2] }
    end
  end
  return frames[first]
end

-- From the last item on, as many as may be read at once: the number of those before.
local function count_left()
  for i = #items, 1, -1 do
    if bytes >= MOST_BYTES then return i end
    local item = items[i]
    if type(item[1]) == 'number' then
      frame_of(item[1])
    else
      bytes = bytes + redis.call('HSTRLEN', base .. 'vitals', item[1])
    end
  end
  return 0
end

local left = count_left()
local records, actives, known = {}, {}, {}
for i = left + 1, #items do
  if type(items[i][1]) ~= 'number' then records[#records + 1] = items[i][1] end
end
if #records > 0 then
  for i, raw in ipairs(redis.call('HMGET', base .. 'active', unpack(records))) do actives[records[i]] = raw end
  for i, raw in ipairs(redis.call('HMGET', base .. 'vitals', unpack(records))) do known[records[i]] = raw end
end

local lost, bodies, vitals_set, freed = {}, {}, {}, {}

local function lose(id, active, vitals)
  vitals.st = (vitals.st or 0) + 1
  stored().start(vitals, active)
  if vitals.st > max_stalled then vitals.df = 'job stalled more than allowable limit' end
  append(vitals_set, id, cmsgpack.pack(vitals))
  lost[#lost + 1] = id
end

local function lose_of_frame(first, offset, claim)
  local frame = frame_of(first)
  if not frame or not is_lost(frame.take, claim) then return end
  local take, brood = frame.take, frame.brood
  if not frame.touched then
    frame.touched = true
    touched[#touched + 1] = first
  end
  for at = math.max(offset, 0), offset < 0 and frame.n - 1 or offset do
    if frame.chars:sub(at + 1, at + 1) == '1' then
      local id = id_in(brood and brood[1], first + at)
      append(bodies, id, frame.body_of(at))
      lose(id, { take[1], 1, take[3], take[4] }, { pa = parent_in(brood, first, at) })
      frame.chars = replace_chars(frame.chars, at, '0')
    end
  end
end

local function lose_record(id, claim)
  local active = actives[id] and stored().active(actives[id])
  if not active or not is_lost(active, claim) then return end
  freed[#freed + 1] = id
  lose(id, active, stored().vitals(known[id]))
end

for i = left + 1, #items do
  local item = items[i]
  if type(item[1]) == 'number' then
    lose_of_frame(item[1], item[2], item[3])
  else
    lose_record(item[1], item[2])
  end
end

call_in_chunks('HSET', base .. 'jobs', bodies)
call_in_chunks('HSET', base .. 'vitals', vitals_set)
call_in_chunks('HDEL', base .. 'active', freed)
for _, first in ipairs(touched) do
  local frame = frames[first]
  frame.take[2] = frame.chars
  store_take(first, frame.n, frame.take)
end
-- whoever waits takes the first in line, which are the last to come
if is_last and left == 0 then wake() end
if #lost == 0 then return { left, lost } end
push_front(lost)
S.active = S.active - #lost
for _, id in ipairs(lost) do
  emit_job('waiting', id, 'active')
  emit_job('stalled', id)
end
flush_events(now_ms)
return { left, lost }
