-- clear: takes jobs out of the line, a step at a time, in the order of the line.
-- C is where a step starts and the next one goes on: phase (front | log | rest), left (elements of the front list, or of a set, still to
-- be looked at), offset (of them, those that stay), ms and seq (last log entry done), skip (references of the next entry that stay),
-- passed (stale references in entries that stay, by id), and what was there when the first step was taken: last_id (number), last_ms
-- and last_seq (log entry). What comes later stays: a number above last_id, a log entry behind the last one.
local ENTRIES = 8
-- What a step costs, in records: a frame that goes as a whole costs as much as ten.
local EFFORT, FRAME_EFFORT = 500, 5

local function start_clear(left)
  local last = redis.call('XREVRANGE', base .. 'log', '+', '-', 'COUNT', 1)[1]
  local ms, seq = (last and last[1] or '0-0'):match('^(%d+)-(%d+)$')
  return { phase = 'front', left = left, offset = 0, ms = S.cursor_ms, seq = S.cursor_seq, skip = 0, passed = {}, last_id = S.id,
    last_ms = tonumber(ms), last_seq = tonumber(seq) }
end

-- What a step removed. ids: in order, where they are wanted; count; records: those that had one; looked: jobs looked at; effort: its cost;
-- ranks: places in line of those that may have a parent, by id.
local G = { ids = {}, count = 0, records = {}, entries = {}, looked = 0, effort = 0, bytes = 0, ranks = {} }

-- pa: what waits for it, when it has no record.
local function note_gone(id, has_record, pa)
  G.count = G.count + 1
  if G.wanted then G.ids[G.count] = id end
  if has_record then G.records[#G.records + 1] = id end
  if has_record or pa then G.ranks[id] = G.count end
  if pa then left_parents[#left_parents + 1] = { base, pa, id } end
end

-- The parents that start head the line. Of those whose children were in line, the one comes first of which a child was first in line; of
-- others, that of which a child is noted last.
local function order_left(by_rank)
  if not by_rank then
    reverse(left_parents)
  elseif #G.records > 0 then
    local function rank(left) return G.ranks[left[3]] or 0 end
    table.sort(left_parents, function(one, other) return rank(one) < rank(other) end)
  end
end

local function is_later(id, C)
  return id:match('^[1-9]%d*$') and #id <= 15 and tonumber(id) > C.last_id
end

-- The latest iterations of schedulers stay (lib/pending).
local spares = redis.call('EXISTS', base .. 'schedulers') == 1

local function pick_spared(filter, ids)
  local picked = pick_records(filter, ids)
  for i = 1, spares and #picked or 0 do picked[i] = picked[i] and not is_pending_iteration(ids[i]) end
  return picked
end

-- The front list from its end: what was pushed first. What was pushed since heads the list.
local function clear_front_end(C, room)
  local ids = redis.call('LRANGE', base .. 'front', -math.min(C.left, room, EFFORT - G.effort), -1)
  local count = 0
  for i = #ids, 1, -1 do
    if is_later(ids[i], C) then break end
    note_gone(ids[i], true)
    -- before those that are noted already
    G.ranks[ids[i]] = -G.count
    count = count + 1
  end
  if count > 0 then redis.call('RPOP', base .. 'front', count) end
  C.left = count < #ids and 0 or C.left - count
  if #ids == 0 then C.left = 0 end
  return count
end

-- The front list from its head. Elements that go are blanked first, then taken out all at once.
local function clear_front_picked(C, filter, room)
  local most = math.min(C.left, room, EFFORT - G.effort)
  local ids = redis.call('LRANGE', base .. 'front', C.offset, C.offset + most - 1)
  local count, picked = 0, pick_spared(filter, ids)
  for i = 1, #picked do
    if picked[i] then
      redis.call('LSET', base .. 'front', C.offset + i - 1, '')
      note_gone(ids[i], true)
      count = count + 1
    end
  end
  if count > 0 then redis.call('LREM', base .. 'front', count, '') end
  C.offset = C.offset + #picked - count
  C.left = #ids == 0 and 0 or C.left - #picked
  return #picked, count
end

local function clear_front(C, filter, room)
  local looked, count
  if picks_all(filter) and not spares then
    looked = clear_front_end(C, room)
    count = looked
  else
    looked, count = clear_front_picked(C, filter, room)
  end
  S.waiting = S.waiting - count
  G.looked, G.effort = G.looked + looked, G.effort + math.max(looked, 1)
end

-- A frame of which some jobs were touched before, or not all may go now. True when it was looked at to its end.
local function clear_in_frame(first, chars, due, filter, room)
  local touched, brood = chars.touched, chars.brood
  local ids = brood and brood[1]
  local bytes, left, changed = { chars.text:byte(1, -1) }, false, false
  local gone, plain, own = ('0'):byte(), ('1'):byte(), ('r'):byte()
  local whole_frame = true
  for i, byte in ipairs(bytes) do
    if byte ~= gone then
      local id = id_in(ids, first + i - 1)
      if room == 0 then
        whole_frame, left = false, true
      else
        room = room - 1
        G.looked, G.effort = G.looked + 1, G.effort + 1
        if byte == plain and due or (byte == own and pick_records(filter, { id })[1]) then
          note_gone(id, byte == own, byte == plain and parent_in(brood, first, i - 1))
          S.waiting = S.waiting - 1
          bytes[i], changed = gone, true
        else
          left = true
        end
      end
    end
  end
  if not left then
    if touched then
      redis.call('HDEL', base .. 'holes', whole(first))
      S.holes = S.holes - 1
    end
    G.entries[#G.entries + 1] = entry_id(first, #bytes)
  elseif changed then
    redis.call('HSET', base .. 'holes', whole(first), string.char(unpack(bytes)))
    if not touched then S.holes = S.holes + 1 end
  end
  return whole_frame
end

local function clear_frame(first, n, blob, filter, room)
  local due, brood = true, brood_of(blob)
  if not picks_all(filter) then
    -- behind a brood
    local at = brood and cmsgpack.unpack_one(blob) or 0
    due = stored().timestamp(blob, at) <= filter.before_ms
  end
  local holes = S.holes > 0 and redis.call('HGET', base .. 'holes', whole(first))
  if holes or (due and n > room) then
    return clear_in_frame(first, { text = holes or string.rep('1', n), touched = holes, brood = brood }, due, filter, room)
  end
  G.looked, G.effort = G.looked + math.min(n, room), G.effort + FRAME_EFFORT
  if due then
    if G.wanted or brood then
      for i = 0, n - 1 do note_gone(id_in(brood and brood[1], first + i), false, parent_in(brood, first, i)) end
    else
      G.count = G.count + n
    end
    S.waiting = S.waiting - n
    G.entries[#G.entries + 1] = entry_id(first, n)
  end
  return n <= room
end

local function forget_stale(ids)
  for _, id in ipairs(ids) do
    if redis.call('HINCRBY', base .. 'gone', id, -1) == 0 then redis.call('HDEL', base .. 'gone', id) end
    S.gone = S.gone - 1
  end
end

-- The references of an entry that are not stale, and those that are.
local function sort_references(C, ids)
  if S.gone == 0 or #ids == 0 then return ids, {} end
  local valid, stale = {}, {}
  for i, count in ipairs(redis.call('HMGET', base .. 'gone', unpack(ids))) do
    local list = tonumber(count or 0) > (C.passed[ids[i]] or 0) and stale or valid
    list[#list + 1] = ids[i]
  end
  return valid, stale
end

-- An entry of references goes when none of them stays; else those that go become stale. True when it was looked at to its end.
local function clear_references(C, entry, filter, room)
  local valid, stale = sort_references(C, stored().ids(entry[2][2]))
  local some = { unpack(valid, C.skip + 1, math.min(#valid, C.skip + room)) }
  local picked, going = pick_spared(filter, some), {}
  for i = 1, #picked do
    if picked[i] then
      going[#going + 1] = some[i]
      note_gone(some[i], true)
    end
  end
  S.waiting = S.waiting - #going
  G.looked, G.effort = G.looked + #picked, G.effort + #picked
  if #going == #valid then
    forget_stale(stale)
    G.entries[#G.entries + 1] = entry[1]
    return true
  end
  for _, id in ipairs(going) do
    redis.call('HINCRBY', base .. 'gone', id, 1)
    S.gone = S.gone + 1
  end
  if C.skip + #picked < #valid then
    C.skip = C.skip + #picked - #going
    return false
  end
  C.skip = 0
  for _, list in ipairs({ going, stale }) do
    for _, id in ipairs(list) do C.passed[id] = (C.passed[id] or 0) + 1 end
  end
  return true
end

local function clear_log(C, filter, room)
  local last = entry_id(C.last_ms, C.last_seq)
  while G.looked < room and G.effort < EFFORT and G.bytes < MAX_BYTES do
    local entries = redis.call('XRANGE', base .. 'log', '(' .. entry_id(C.ms, C.seq), last, 'COUNT', ENTRIES)
    for _, entry in ipairs(entries) do
      if G.looked >= room or G.effort >= EFFORT then return end
      local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
      ms, seq = tonumber(ms), tonumber(seq)
      local blob = entry[2][2]
      G.bytes = G.bytes + #blob
      local done
      if entry[2][1] == 'f' and seq >= 1 and seq <= 64 then
        done = clear_frame(ms, seq, blob, filter, room - G.looked)
      else
        done = clear_references(C, entry, filter, room - G.looked)
      end
      if not done then return end
      C.ms, C.seq = ms, seq
    end
    if #entries < ENTRIES then
      C.phase, C.left, C.offset = 'rest', redis.call('LLEN', base .. 'front'), 0
      return
    end
  end
end

-- Looks at up to `room` jobs of the line. True when there are no more. A worker that broke a frame meanwhile put the rest of it into
-- the front list, which is therefore looked at again at the end.
local function clear_line(C, filter, room)
  -- a worker may have gone past where the last step ended
  if C.ms < S.cursor_ms or (C.ms == S.cursor_ms and C.seq < S.cursor_seq) then
    C.ms, C.seq, C.skip = S.cursor_ms, S.cursor_seq, 0
  end
  if C.phase == 'front' then
    while C.left > 0 and G.looked < room and G.effort < EFFORT do clear_front(C, filter, room - G.looked) end
    if C.left == 0 then C.phase = 'log' end
  end
  if C.phase == 'log' then clear_log(C, filter, room) end
  if C.phase == 'rest' then
    while C.left > 0 and G.looked < room and G.effort < EFFORT do clear_front(C, filter, room - G.looked) end
  end
  return C.phase == 'rest' and C.left == 0
end

-- Looks at up to `room` members of a set of records, by rank. True when there are no more.
local function clear_set(C, set, filter, room)
  local ids = redis.call('ZRANGE', base .. set, C.offset, C.offset + math.min(C.left, room, EFFORT) - 1)
  local going, picked = {}, pick_spared(filter, ids)
  for i = 1, #picked do
    if picked[i] and not is_later(ids[i], C) then
      going[#going + 1] = ids[i]
      note_gone(ids[i], true)
    end
  end
  call_in_chunks('ZREM', base .. set, going)
  G.looked = #picked
  C.offset = C.offset + #picked - #going
  C.left = #ids == 0 and 0 or C.left - #picked
  return C.left == 0
end

-- Drops up to `room` jobs of a set in which they have the time that counts: those that ended, or were parked, first. True when there are no
-- more.
local function clear_scored(C, set, filter, room)
  local least = filter.after_ms >= 0 and whole(filter.after_ms) or '-inf'
  local chosen = filter.names or filter.error ~= ''
  while G.looked < room and G.effort < EFFORT do
    local page = redis.call('ZRANGEBYSCORE', base .. set, least, whole(filter.before_ms), 'WITHSCORES', 'LIMIT', C.offset,
      math.min(100, room - G.looked))
    if #page == 0 then return true end
    if chosen then
      local ids, going = {}, {}
      for i = 1, #page, 2 do ids[#ids + 1] = page[i] end
      local picked = pick_records(filter, ids)
      for i = 1, #picked do
        if picked[i] then
          going[#going + 1] = page[2 * i - 1]
          going[#going + 1] = page[2 * i]
        end
      end
      page = going
      C.offset = C.offset + #picked - #going / 2
      G.effort = G.effort + #picked
    else
      G.effort = G.effort + #page / 2 * (set == 'completed' and FRAME_EFFORT or 1)
    end
    drop_finished(set, page, room - G.looked, G.ids)
    G.count, G.looked = #G.ids, #G.ids
  end
  return false
end
