-- recover_stalled: active -> front of waiting, for jobs that find_lost found, if they still are where they were; a bounded step a call. The last
-- of them go first, so that in the end all head the line in their order.
-- KEYS    base (also: state meta jobs vitals traces active log front takes frames events trims wake lease:<owner>)
-- ARGV    now_ms (epoch ms), max_stalled, owner ('' = those of whoever has no lease), items (MessagePack: {id, claim} of a record,
--         {first, offset (-1 = the whole frame), claim} of a frame, in the order in which they are to wait), is_last (1: none come after these)
-- RETURNS {left (items, from the first, that are for another call), {id, ...} of the jobs brought back}
-- ERRORS  none      EVENTS waiting, stalled      COST O(items), or 1 MiB
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, and it goes in steps)
-- FLAGS   allow-oom
local Events = require('events')
local Frame = require('frame')
local Held = require('held')
local Line = require('line')
local State = require('state')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local now_ms, max_stalled, owner = tonumber(args[1]), tonumber(args[2]), args[3]
  local items, is_last = cmsgpack.unpack(args[4]), args[5] == '1'
  local MOST_BYTES = 1048576

  local queue = State.open(base)

  local function is_lost(held, claim)
    if not Frame.is_claim(Held.held_claim(held), claim) then return false end
    if owner ~= '' then return held[3] == owner end
    return not Held.is_alive(queue, held[3])
  end

  -- The frames that items name, by first number; false: nobody holds it.
  local frames, touched, bytes = {}, {}, 0

  local function frame_of(first)
    if frames[first] == nil then
      local raw = redis.call('HGET', base .. 'takes', State.whole(first))
      frames[first] = false
      if raw then
        local _, take = Held.held_take(first, raw)
        local n, blob = Held.held_frame(queue, first, take)
        bytes = bytes + #blob
        frames[first] = { take = take, n = n, body_of = Frame.frame_bodies(blob), header = Frame.header_in(take),
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

  local lost, bodies, fields_set, freed = {}, {}, {}, {}

  local function lose(id, active, fields)
    fields.st = (fields.st or 0) + 1
    Stored.start(fields, active)
    if fields.st > max_stalled then fields.df = 'job stalled more than allowable limit' end
    Line.append(fields_set, id, cmsgpack.pack(fields))
    lost[#lost + 1] = id
  end

  local function lose_of_frame(first, offset, claim)
    local frame = frame_of(first)
    if not frame or not is_lost(frame.take, claim) then return end
    local take, header = frame.take, frame.header
    if not frame.touched then
      frame.touched = true
      touched[#touched + 1] = first
    end
    for at = math.max(offset, 0), offset < 0 and frame.n - 1 or offset do
      if frame.chars:sub(at + 1, at + 1) == '1' then
        local id = Frame.id_in(header and header[1], first + at)
        Line.append(bodies, id, frame.body_of(at))
        lose(id, { take[1], 1, take[3], take[4] }, { pa = Frame.parent_in(header, first, at) })
        frame.chars = Frame.replace_chars(frame.chars, at, '0')
      end
    end
  end

  local function lose_record(id, claim)
    local active = actives[id] and Stored.active(actives[id])
    if not active or not is_lost(active, claim) then return end
    freed[#freed + 1] = id
    lose(id, active, Stored.fields(known[id]))
  end

  for i = left + 1, #items do
    local item = items[i]
    if type(item[1]) == 'number' then
      lose_of_frame(item[1], item[2], item[3])
    else
      lose_record(item[1], item[2])
    end
  end

  Line.call_in_chunks('HSET', base .. 'jobs', bodies)
  Line.call_in_chunks('HSET', base .. 'vitals', fields_set)
  Line.call_in_chunks('HDEL', base .. 'active', freed)
  for _, first in ipairs(touched) do
    local frame = frames[first]
    frame.take[2] = frame.chars
    Frame.store_take(queue, first, frame.n, frame.take)
  end
  -- whoever waits takes the first in line, which are the last to come
  if is_last and left == 0 then Line.wake(queue) end
  if #lost == 0 then return { left, lost } end
  Line.push_front(queue, lost)
  queue.active = queue.active - #lost
  for _, id in ipairs(lost) do
    Events.emit_job(queue, 'waiting', id, 'active')
    Events.emit_job(queue, 'stalled', id)
  end
  Events.flush_events(queue, now_ms)
  return { left, lost }
end
