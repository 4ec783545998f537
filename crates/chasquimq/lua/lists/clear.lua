-- clear: takes jobs out of the waiting list, a step at a time, in its order.
-- C is where a step starts and the next one goes on: phase (front | log | rest | groups), left (elements of the front list, or of a set, still to
-- be looked at), offset (of them, those that stay), ms and seq (last log entry done), skip (references of the next entry that stay),
-- passed (stale references in entries that stay, by id), and what was there when the first step was taken: last_id (number), last_ms
-- and last_seq (log entry). What comes later stays: a number above last_id, a log entry behind the last one.
local Filter = require('filter')
local Frame = require('frame')
local Groups = require('groups')
local Parents = require('parents')
local PendingIteration = require('pending_iteration')
local ReadBudget = require('read_budget')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local ENTRIES = 8
-- What a step costs, in records: a frame that goes as a whole costs as much as ten.
local EFFORT, FRAME_EFFORT = 500, 5

local function start_clear(queue, left)
  local last = redis.call('XREVRANGE', queue.base .. 'log', '+', '-', 'COUNT', 1)[1]
  local ms, seq = (last and last[1] or '0-0'):match('^(%d+)-(%d+)$')
  return { phase = 'front', left = left, offset = 0, ms = queue.cursor_ms, seq = queue.cursor_seq, skip = 0, passed = {}, last_id = queue.id,
    last_ms = tonumber(ms), last_seq = tonumber(seq) }
end

-- Of a queue: cleared, what a step removed. ids: in order, where they are wanted; count; records: those that had one; looked: jobs looked at;
-- effort: its cost; ranks: places in the waiting list of those that may have a parent, by id;
-- spares: the latest iterations of schedulers stay (rules/pending_iteration).
local function start(queue, wanted)
  queue.cleared = { wanted = wanted, ids = {}, count = 0, records = {}, entries = {}, looked = 0, effort = 0, bytes = 0, ranks = {},
    spares = redis.call('EXISTS', queue.base .. 'schedulers') == 1 }
end

-- pa: what waits for it, when it has no record.
local function note_stale(queue, id, has_record, pa)
  local cleared = queue.cleared
  cleared.count = cleared.count + 1
  if cleared.wanted then cleared.ids[cleared.count] = id end
  if has_record then cleared.records[#cleared.records + 1] = id end
  if has_record or pa then cleared.ranks[id] = cleared.count end
  if pa then queue.call.left_parents[#queue.call.left_parents + 1] = { queue.base, pa, id } end
end

-- The parents that start head the waiting list. Of those whose children waited, the one comes first of which a child was first in the waiting list; of
-- others, that of which a child is noted last.
local function order_left(queue, by_rank)
  local cleared = queue.cleared
  if not by_rank then
    Parents.reverse(queue.call.left_parents)
  elseif #cleared.records > 0 then
    local function rank(left) return cleared.ranks[left[3]] or 0 end
    table.sort(queue.call.left_parents, function(one, other) return rank(one) < rank(other) end)
  end
end

local function is_later(id, cursor)
  return id:match('^[1-9]%d*$') and #id <= 15 and tonumber(id) > cursor.last_id
end

local function pick_spared(queue, filter, ids)
  local picked = Filter.pick_records(queue, filter, ids)
  for i = 1, queue.cleared.spares and #picked or 0 do picked[i] = picked[i] and not PendingIteration.is_pending_iteration(queue, ids[i]) end
  return picked
end

-- The front list from its end: what was pushed first. What was pushed since heads the list.
local function clear_front_end(queue, cursor, room)
  local cleared = queue.cleared
  local ids = redis.call('LRANGE', queue.base .. 'front', -math.min(cursor.left, room, EFFORT - cleared.effort), -1)
  local count = 0
  for i = #ids, 1, -1 do
    if is_later(ids[i], cursor) then break end
    note_stale(queue, ids[i], true)
    -- before those that are noted already
    cleared.ranks[ids[i]] = -cleared.count
    count = count + 1
  end
  if count > 0 then redis.call('RPOP', queue.base .. 'front', count) end
  cursor.left = count < #ids and 0 or cursor.left - count
  if #ids == 0 then cursor.left = 0 end
  return count
end

-- The front list from its head. Elements that go are blanked first, then taken out all at once.
local function clear_front_picked(queue, cursor, filter, room)
  local most = math.min(cursor.left, room, EFFORT - queue.cleared.effort)
  local ids = redis.call('LRANGE', queue.base .. 'front', cursor.offset, cursor.offset + most - 1)
  local count, picked = 0, pick_spared(queue, filter, ids)
  for i = 1, #picked do
    if picked[i] then
      redis.call('LSET', queue.base .. 'front', cursor.offset + i - 1, '')
      note_stale(queue, ids[i], true)
      count = count + 1
    end
  end
  if count > 0 then redis.call('LREM', queue.base .. 'front', count, '') end
  cursor.offset = cursor.offset + #picked - count
  cursor.left = #ids == 0 and 0 or cursor.left - #picked
  return #picked, count
end

local function clear_front(queue, cursor, filter, room)
  local cleared = queue.cleared
  local looked, count
  if Filter.picks_all(filter) and not cleared.spares then
    looked = clear_front_end(queue, cursor, room)
    count = looked
  else
    looked, count = clear_front_picked(queue, cursor, filter, room)
  end
  queue.waiting = queue.waiting - count
  cleared.looked, cleared.effort = cleared.looked + looked, cleared.effort + math.max(looked, 1)
end

-- A frame of which some jobs were touched before, or not all may go now. True when it was looked at to its end.
local function clear_in_frame(queue, first, chars, due, filter, room)
  local cleared = queue.cleared
  local touched, header = chars.touched, chars.header
  local ids = header and header[1]
  local bytes, left, changed = { chars.text:byte(1, -1) }, false, false
  local gone, plain, own = ('0'):byte(), ('1'):byte(), ('r'):byte()
  local whole_frame = true
  for i, byte in ipairs(bytes) do
    if byte ~= gone then
      local id = Frame.id_in(ids, first + i - 1)
      if room == 0 then
        whole_frame, left = false, true
      else
        room = room - 1
        cleared.looked, cleared.effort = cleared.looked + 1, cleared.effort + 1
        if byte == plain and due or (byte == own and Filter.pick_records(queue, filter, { id })[1]) then
          note_stale(queue, id, byte == own, byte == plain and Frame.parent_in(header, first, i - 1))
          queue.waiting = queue.waiting - 1
          bytes[i], changed = gone, true
        else
          left = true
        end
      end
    end
  end
  if not left then
    if touched then
      redis.call('HDEL', queue.base .. 'holes', State.whole(first))
      queue.holes = queue.holes - 1
    end
    cleared.entries[#cleared.entries + 1] = State.entry_id(first, #bytes)
  elseif changed then
    redis.call('HSET', queue.base .. 'holes', State.whole(first), string.char(unpack(bytes)))
    if not touched then queue.holes = queue.holes + 1 end
  end
  return whole_frame
end

local function clear_frame(queue, first, n, blob, filter, room)
  local cleared = queue.cleared
  local due, header = true, Frame.header_of(blob)
  if not Filter.picks_all(filter) then
    -- behind a parent header
    local at = header and cmsgpack.unpack_one(blob) or 0
    due = Stored.timestamp(blob, at) <= filter.before_ms
  end
  local holes = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first))
  if holes or (due and n > room) then
    return clear_in_frame(queue, first, { text = holes or string.rep('1', n), touched = holes, header = header }, due, filter, room)
  end
  cleared.looked, cleared.effort = cleared.looked + math.min(n, room), cleared.effort + FRAME_EFFORT
  if due then
    if cleared.wanted or header then
      for i = 0, n - 1 do note_stale(queue, Frame.id_in(header and header[1], first + i), false, Frame.parent_in(header, first, i)) end
    else
      cleared.count = cleared.count + n
    end
    queue.waiting = queue.waiting - n
    cleared.entries[#cleared.entries + 1] = State.entry_id(first, n)
  end
  return n <= room
end

local function forget_stale(queue, ids)
  for _, id in ipairs(ids) do
    if redis.call('HINCRBY', queue.base .. 'gone', id, -1) == 0 then redis.call('HDEL', queue.base .. 'gone', id) end
    queue.stale = queue.stale - 1
  end
end

-- The references of an entry that are not stale, and those that are.
local function sort_references(queue, cursor, ids)
  if queue.stale == 0 or #ids == 0 then return ids, {} end
  local valid, stale = {}, {}
  for i, count in ipairs(redis.call('HMGET', queue.base .. 'gone', unpack(ids))) do
    local list = tonumber(count or 0) > (cursor.passed[ids[i]] or 0) and stale or valid
    list[#list + 1] = ids[i]
  end
  return valid, stale
end

-- An entry of references goes when none of them stays; else those that go become stale. True when it was looked at to its end.
local function clear_references(queue, cursor, entry, filter, room)
  local cleared = queue.cleared
  local valid, stale = sort_references(queue, cursor, Stored.ids(entry[2][2]))
  local some = { unpack(valid, cursor.skip + 1, math.min(#valid, cursor.skip + room)) }
  local picked, going = pick_spared(queue, filter, some), {}
  for i = 1, #picked do
    if picked[i] then
      going[#going + 1] = some[i]
      note_stale(queue, some[i], true)
    end
  end
  queue.waiting = queue.waiting - #going
  cleared.looked, cleared.effort = cleared.looked + #picked, cleared.effort + #picked
  if #going == #valid then
    forget_stale(queue, stale)
    cleared.entries[#cleared.entries + 1] = entry[1]
    return true
  end
  for _, id in ipairs(going) do
    redis.call('HINCRBY', queue.base .. 'gone', id, 1)
    queue.stale = queue.stale + 1
  end
  if cursor.skip + #picked < #valid then
    cursor.skip = cursor.skip + #picked - #going
    return false
  end
  cursor.skip = 0
  for _, list in ipairs({ going, stale }) do
    for _, id in ipairs(list) do cursor.passed[id] = (cursor.passed[id] or 0) + 1 end
  end
  return true
end

local function clear_log(queue, cursor, filter, room)
  local cleared = queue.cleared
  local last = State.entry_id(cursor.last_ms, cursor.last_seq)
  while cleared.looked < room and cleared.effort < EFFORT and cleared.bytes < ReadBudget.MAX_BYTES do
    local entries = redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(cursor.ms, cursor.seq), last, 'COUNT', ENTRIES)
    for _, entry in ipairs(entries) do
      if cleared.looked >= room or cleared.effort >= EFFORT then return end
      local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
      ms, seq = tonumber(ms), tonumber(seq)
      local blob = entry[2][2]
      cleared.bytes = cleared.bytes + #blob
      local done
      if entry[2][1] == 'f' and seq >= 1 and seq <= 64 then
        done = clear_frame(queue, ms, seq, blob, filter, room - cleared.looked)
      else
        done = clear_references(queue, cursor, entry, filter, room - cleared.looked)
      end
      if not done then return end
      cursor.ms, cursor.seq = ms, seq
    end
    if #entries < ENTRIES then
      cursor.phase, cursor.left, cursor.offset = 'rest', redis.call('LLEN', queue.base .. 'front'), 0
      return
    end
  end
end

-- Looks at up to `room` members of a set of records, by rank. True when there are no more.
local function clear_set(queue, cursor, set, filter, room)
  local ids = redis.call('ZRANGE', queue.base .. set, cursor.offset, cursor.offset + math.min(cursor.left, room, EFFORT) - 1)
  local going, picked = {}, pick_spared(queue, filter, ids)
  for i = 1, #picked do
    if picked[i] and not is_later(ids[i], cursor) then
      going[#going + 1] = ids[i]
      note_stale(queue, ids[i], true)
    end
  end
  WaitingList.call_in_chunks('ZREM', queue.base .. set, going)
  queue.cleared.looked = #picked
  cursor.offset = cursor.offset + #picked - #going
  cursor.left = #ids == 0 and 0 or cursor.left - #picked
  return cursor.left == 0
end

-- The same of the jobs of all groups, or of one: the set has their ids.
local function clear_groups(queue, cursor, set, filter, room)
  local cleared = queue.cleared
  local looked, records = cleared.looked, #cleared.records
  local done = clear_set(queue, cursor, set, filter, room - looked)
  cleared.looked, cleared.effort = looked + cleared.looked, EFFORT
  local going = { unpack(cleared.records, records + 1) }
  if #going > 0 then Groups.take_out(queue, going, redis.call('HMGET', queue.base .. 'jobs', unpack(going))) end
  return done
end

-- Looks at up to `room` jobs of the waiting list. True when there are no more. A worker that broke a frame meanwhile put the rest of it into
-- the front list, which is therefore looked at again at the end.
local function clear_waiting(queue, cursor, filter, room)
  local cleared = queue.cleared
  -- a worker may have gone past where the last step ended
  if cursor.ms < queue.cursor_ms or (cursor.ms == queue.cursor_ms and cursor.seq < queue.cursor_seq) then
    cursor.ms, cursor.seq, cursor.skip = queue.cursor_ms, queue.cursor_seq, 0
  end
  if cursor.phase == 'front' then
    while cursor.left > 0 and cleared.looked < room and cleared.effort < EFFORT do clear_front(queue, cursor, filter, room - cleared.looked) end
    if cursor.left == 0 then cursor.phase = 'log' end
  end
  if cursor.phase == 'log' then clear_log(queue, cursor, filter, room) end
  if cursor.phase == 'rest' then
    while cursor.left > 0 and cleared.looked < room and cleared.effort < EFFORT do clear_front(queue, cursor, filter, room - cleared.looked) end
  end
  if cursor.phase == 'rest' and cursor.left == 0 then cursor.phase, cursor.left, cursor.offset = 'groups', Groups.count(queue), 0 end
  if cursor.phase == 'groups' and cursor.left > 0 and cleared.looked < room and cleared.effort < EFFORT then clear_groups(queue, cursor, 'grouped', filter, room) end
  return cursor.phase == 'groups' and cursor.left == 0
end

-- Drops up to `room` jobs of a set in which they have the time that counts: those that ended, or were parked, first. True when there are no
-- more.
local function clear_scored(queue, set, filter, room)
  local cleared = queue.cleared
  while cleared.looked < room and cleared.effort < EFFORT do
    local page = redis.call('ZRANGEBYSCORE', queue.base .. set, '-inf', Retention.until_ms(filter.before_ms), 'WITHSCORES', 'LIMIT', 0,
      math.min(100, room - cleared.looked))
    if #page == 0 then return true end
    cleared.effort = cleared.effort + #page / 2 * (set == 'completed' and FRAME_EFFORT or 1)
    Retention.drop_finished(queue, set, page, room - cleared.looked, cleared.ids)
    cleared.count, cleared.looked = #cleared.ids, #cleared.ids
  end
  return false
end

return {
  start = start,
  start_clear = start_clear,
  note_stale = note_stale,
  order_left = order_left,
  clear_waiting = clear_waiting,
  clear_set = clear_set,
  clear_groups = clear_groups,
  clear_scored = clear_scored,
}
