-- recover_stalled: active -> front of waiting, for jobs that find_lost found, if they still are where they were; a bounded step a call. The last
-- of them go first, so that in the end all head the waiting list in their order.
-- What its worker had started counts a stall. What it had only taken in advance counts neither that nor a start, and becomes a suspect: neither that nor
-- a job that has stalled is taken in advance again (step/fetch), so they count whenever they are lost. For jobs that ended, and of which the end was not
-- recorded, stand before those that ran: what kills its worker may be taken for one that did not start, but only once.
-- KEYS    base (also: state meta jobs vitals traces active log front takes frames apart:<first> scheduler events trims wake lease:<owner>
--         memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, max_stalled, owner ('' = those of whoever has no lease), items (MessagePack:
--         {id, claim, started (0: the worker cannot have started it)} of a record, {first, offset (-1 = the whole frame), claim, started (so many of its
--         jobs, from the first)} of a frame, in the order in which they are to wait), is_last (1: none come after these)
-- RETURNS {left (items, from the first, that are for another call), jobs brought back, {id, ...} of those that count a stall}; with max_stalled 0, where
--         nothing is taken in advance, all do
-- ERRORS  none      EVENTS waiting, stalled      COST O(items), or 1 MiB
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, and it goes in steps)
-- FLAGS   allow-oom
local Active = require('active')
local Events = require('events')
local Frame = require('frame')
local Groups = require('groups')
local Memo = require('memo')
local PendingIteration = require('pending_iteration')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local MOST_BYTES = 1048576

-- Of a queue: recovery, what the items name and what becomes of it. frames: by first number, false: nobody holds it; touched: first numbers of those that
-- jobs leave; bytes: read so far; active and fields: of records, as stored; lost: ids; stalled: those of them that count; bodies, fields_set and freed:
-- what is written.
local function start(queue, owner, max_stalled)
  queue.recovery = State.with_lists({ owner = owner, max_stalled = max_stalled, bytes = 0 })
end

local function is_item_of_frame(item)
  return type(item[1]) == 'number'
end

local function is_lost(queue, held, claim)
  if not Frame.is_claim(Active.claim_of(held), claim) then return false end
  local owner = queue.recovery.owner
  if owner ~= '' then return held[3] == owner end
  return not Active.is_alive(queue, held[3])
end

local function frame_of(queue, first)
  local recovery = queue.recovery
  local frames = recovery.frames
  if frames[first] == nil then
    local raw = redis.call('HGET', queue.base .. 'takes', State.whole(first))
    frames[first] = false
    if raw then
      local _, holder = Active.read_frame_holder(first, raw)
      local n, blob = Active.held_frame(queue, first, holder)
      recovery.bytes = recovery.bytes + (Frame.bytes_apart(queue, blob) or #blob)
      frames[first] = { holder = holder, n = n, body_of = Frame.frame_bodies(queue, first, blob, n), header = Frame.header_in(holder),
        chars = holder[2] == '' and string.rep('1', n) or holder[2] }
    end
  end
  return frames[first]
end

-- From the last item on, as many as may be read at once: the number of those before.
local function count_left(queue, items)
  local recovery = queue.recovery
  for i = #items, 1, -1 do
    if recovery.bytes >= MOST_BYTES then return i end
    local item = items[i]
    if is_item_of_frame(item) then
      frame_of(queue, item[1])
    else
      recovery.bytes = recovery.bytes + redis.call('HSTRLEN', queue.base .. 'vitals', item[1])
    end
  end
  return 0
end

local function load_records(queue, items, left)
  local recovery, records = queue.recovery, {}
  for i = left + 1, #items do
    if not is_item_of_frame(items[i]) then records[#records + 1] = items[i][1] end
  end
  if #records == 0 then return end
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'active', unpack(records))) do recovery.active[records[i]] = raw end
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(records))) do recovery.fields[records[i]] = raw end
end

local function count_stall(queue, id, active, fields)
  local recovery = queue.recovery
  fields.st, fields.su = (fields.st or 0) + 1, nil
  Stored.start(fields, active)
  -- a scheduler's jobs are never failed for it: of one that ends too early there would be no next
  if fields.st > recovery.max_stalled and not PendingIteration.is_iteration(queue, id) then fields.df = 'job stalled more than allowable limit' end
  recovery.stalled[#recovery.stalled + 1] = id
end

local function lose(queue, id, active, fields, was_started)
  local recovery = queue.recovery
  if was_started or fields.su or (fields.st or 0) > 0 or recovery.max_stalled == 0 then
    count_stall(queue, id, active, fields)
  else
    fields.as, fields.su = active[2] - 1, 1
  end
  WaitingList.append(recovery.fields_set, id, cmsgpack.pack(fields))
  recovery.lost[#recovery.lost + 1] = id
end

local function lose_of_frame(queue, first, offset, claim, started)
  local recovery, frame = queue.recovery, frame_of(queue, first)
  if not frame or not is_lost(queue, frame.holder, claim) then return end
  local holder, header = frame.holder, frame.header
  if not frame.touched then
    frame.touched = true
    recovery.touched[#recovery.touched + 1] = first
  end
  for at = math.max(offset, 0), offset < 0 and frame.n - 1 or offset do
    if frame.chars:sub(at + 1, at + 1) == '1' then
      local id = Frame.id_in(header and header[1], first + at)
      WaitingList.append(recovery.bodies, id, frame.body_of(at))
      lose(queue, id, { holder[1], 1, holder[3], holder[4] }, { pa = Frame.parent_in(header, first, at) }, started > 0)
      started = started - 1
      frame.chars = Frame.replace_chars(frame.chars, at, '0')
    end
  end
end

local function lose_record(queue, id, claim, started)
  local recovery = queue.recovery
  local raw = recovery.active[id]
  local active = raw and Stored.active(raw)
  if not active or not is_lost(queue, active, claim) then return end
  recovery.freed[#recovery.freed + 1] = id
  Groups.note_left(queue, active[7], 1)
  lose(queue, id, active, Stored.fields(recovery.fields[id]), started > 0)
end

local function write(queue)
  local recovery, base = queue.recovery, queue.base
  WaitingList.call_in_chunks('HSET', base .. 'jobs', recovery.bodies)
  WaitingList.call_in_chunks('HSET', base .. 'vitals', recovery.fields_set)
  WaitingList.call_in_chunks('HDEL', base .. 'active', recovery.freed)
  Groups.free_left(queue)
  for _, first in ipairs(recovery.touched) do
    local frame = recovery.frames[first]
    frame.holder[2] = frame.chars
    Frame.store_holder(queue, first, frame.n, frame.holder)
  end
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local max_stalled, owner, items, is_last = tonumber(args[5]), args[6], cmsgpack.unpack(args[7]), args[8] == '1'

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  start(queue, owner, max_stalled)
  local left = count_left(queue, items)
  load_records(queue, items, left)
  for i = left + 1, #items do
    local item = items[i]
    if is_item_of_frame(item) then lose_of_frame(queue, unpack(item, 1, 4)) else lose_record(queue, unpack(item, 1, 3)) end
  end
  write(queue)
  local lost, stalled, has_stalled = queue.recovery.lost, queue.recovery.stalled, {}
  -- whoever waits takes the first in the waiting list, which are the last to come
  if is_last and left == 0 then WaitingList.wake(queue) end
  if #lost == 0 then return { left, 0, stalled } end
  WaitingList.push_front(queue, Groups.enter_own(queue, lost, true))
  queue.active = queue.active - #lost
  for _, id in ipairs(stalled) do has_stalled[id] = true end
  for _, id in ipairs(lost) do
    Events.emit_job(queue, 'waiting', id, 'active')
    if has_stalled[id] then Events.emit_job(queue, 'stalled', id) end
  end
  Events.flush_events(queue, now_ms)
  local reply = { left, #lost, stalled }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
