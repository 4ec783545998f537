-- fetch: waiting | prioritized -> active, for one worker. Order: the front list, the log, then jobs with a priority, then those of groups (step/turns).
-- It takes at most `want` jobs that start now, and `surplus` jobs that start a moment later, of which there are none while a worker waits for
-- jobs (states/waiting_list). A frame that holds more than there is
-- room for is broken: its jobs become records, those that fit become active, the rest goes to the front list.
-- A job that stalled before is never surplus: what killed its worker must not take it along again. Nor is a suspect (transitions/recover_stalled).
local Events = require('events')
local Fetched = require('fetched')
local Find = require('find')
local ForeignEntries = require('foreign_entries')
local Frame = require('frame')
local Groups = require('groups')
local Holder = require('holder')
local Mend = require('mend')
local Prioritized = require('prioritized')
local State = require('state')
local Stored = require('stored')
local Turns = require('turns')
local WaitingList = require('waiting_list')

-- References of removed jobs stay in the log; each is skipped once. The front list has none. known: which these are is known; else those are whose jobs are
-- gone, or in another state.
local function is_stale(queue, id, known)
  if not known then return redis.call('HEXISTS', queue.base .. 'jobs', id) == 0 or Find.record_state(queue, id) ~= 'waiting' end
  local count = tonumber(redis.call('HGET', queue.base .. 'gone', id) or 0) or 1
  if count == 0 then return false end
  if count == 1 then
    redis.call('HDEL', queue.base .. 'gone', id)
  else
    redis.call('HINCRBY', queue.base .. 'gone', id, -1)
  end
  queue.stale = queue.stale - 1
  return true
end

local function without_stale(queue, ids)
  if queue.stale == 0 then return ids end
  local valid, known = {}, redis.call('EXISTS', queue.base .. 'gone') == 1
  for _, id in ipairs(ids) do
    if not is_stale(queue, id, known) then valid[#valid + 1] = id end
  end
  return valid
end

-- How many of these records, from the first, may be surplus.
local function count_fit(queue, ids)
  if #ids == 0 or redis.call('EXISTS', queue.base .. 'vitals') == 0 then return #ids end
  for i, fields_raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(ids))) do
    if Stored.is_taken_late(fields_raw) then return i - 1 end
  end
  return #ids
end

local function push_rest(queue, ids)
  queue.fetched.rest = #ids > 0
  for from = 1, #ids, 1000 do
    redis.call('RPUSH', queue.base .. 'front', unpack(ids, from, math.min(from + 999, #ids)))
  end
end

-- Breaks the frame at the head of the waiting list; `room` of its jobs become active.
local function break_frame(queue, first, n, blob, room, step)
  local chars = queue.holes > 0 and redis.call('HGET', queue.base .. 'holes', State.whole(first))
  if chars then
    redis.call('HDEL', queue.base .. 'holes', State.whole(first))
    queue.holes = queue.holes - 1
  end
  local body_of, header = Frame.frame_bodies(queue, first, blob, n), Frame.header_of(blob)
  local set, ids, bodies, rest, fields_set = {}, {}, {}, {}, {}
  for i = 0, n - 1 do
    local char = chars and chars:sub(i + 1, i + 1) or '1'
    local id = Frame.id_in(header and header[1], first + i)
    if char ~= '0' then
      if char == '1' then
        local body = body_of(i)
        set[#set + 1] = id
        set[#set + 1] = body
        if header then WaitingList.append(fields_set, id, cmsgpack.pack({ pa = Frame.parent_in(header, first, i) })) end
        if room > 0 then bodies[#ids + 1] = body end
      elseif room > 0 then
        bodies[#ids + 1] = redis.call('HGET', queue.base .. 'jobs', id)
      end
      if room > 0 then
        room = room - 1
        ids[#ids + 1] = id
      else
        rest[#rest + 1] = id
      end
    end
  end
  if #set > 0 then redis.call('HSET', queue.base .. 'jobs', unpack(set)) end
  if #fields_set > 0 then redis.call('HSET', queue.base .. 'vitals', unpack(fields_set)) end
  if #ids > 0 then
    queue.waiting = queue.waiting - #ids
    local fields = (chars or header) and redis.call('HMGET', queue.base .. 'vitals', unpack(ids)) or {}
    Fetched.add_records(queue, ids, bodies, fields, step)
  end
  push_rest(queue, rest)
  Frame.drop_frame(queue, first, n)
end

-- The waiting list is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_prioritized(queue, want, most, step)
  local fetched = queue.fetched
  while fetched.taken < most do
    local room = fetched.taken < want and want - fetched.taken or fetched.bytes < step.max_bytes and most - fetched.taken or 0
    local first = room > 0 and redis.call('ZRANGE', queue.base .. 'prioritized', 0, 0)[1]
    if not first then
      if room > 0 then queue.place = Prioritized.FIRST_PLACE end
      return
    end
    local count = math.min(room, fetched.taken < want and Fetched.records_chunk(queue, first, room) or Fetched.surplus_chunk(queue))
    if count == 0 then return end
    -- cheaper than ZPOPMIN, which gives scores that nobody needs
    local ids = redis.call('ZRANGE', queue.base .. 'prioritized', 0, count - 1)
    local fit = fetched.taken < want and #ids or count_fit(queue, ids)
    if fit == 0 then return end
    redis.call('ZREMRANGEBYRANK', queue.base .. 'prioritized', 0, fit - 1)
    if fit < #ids then return Fetched.take_records(queue, { unpack(ids, 1, fit) }, step) end
    Fetched.take_records(queue, ids, step)
    if #ids < count then
      queue.place = Prioritized.FIRST_PLACE
      return
    end
  end
end

local function take_front(queue, want, most, step)
  if queue.waiting == 0 then return end
  local fetched = queue.fetched
  while fetched.taken < want do
    local chunk = Fetched.records_chunk(queue)
    if chunk == 0 then break end
    local ids = redis.call('LPOP', queue.base .. 'front', math.min(want - fetched.taken, chunk))
    if not ids then return end
    -- what another program wrote there is no job, and was not counted
    local before = fetched.taken + fetched.put_off
    Fetched.take_records(queue, ids, step)
    queue.waiting = queue.waiting - (fetched.taken + fetched.put_off - before)
  end
  while fetched.taken < most do
    local chunk = Fetched.surplus_chunk(queue)
    if chunk == 0 then break end
    local ids = redis.call('LRANGE', queue.base .. 'front', 0, math.min(most - fetched.taken, chunk) - 1)
    if #ids == 0 then return end
    local fit = count_fit(queue, ids)
    fetched.rest = fetched.rest or fit < #ids
    if fit == 0 then return end
    redis.call('LPOP', queue.base .. 'front', fit)
    local before = fetched.taken
    Fetched.take_records(queue, { unpack(ids, 1, fit) }, step)
    queue.waiting = queue.waiting - (fetched.taken - before)
    if fetched.rest then return end
  end
  -- of interest to what goes on with the log
  if fetched.taken < most then fetched.rest = redis.call('EXISTS', queue.base .. 'front') == 1 end
end

-- Takes one log entry, or what there is room for. step.max_bytes bounds what is taken beyond the jobs that start now.
local function take_entry(queue, entry, want, most, step)
  local fetched = queue.fetched
  local room = fetched.bytes < step.max_bytes and most - fetched.taken or want - fetched.taken
  if room <= 0 or Fetched.is_full(fetched) then return false end
  local field, blob = entry[2][1], entry[2][2]
  local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  if field == 'f' and seq >= 1 and seq <= 64 then
    -- a surplus is not worth the records of a broken frame
    if seq > room and fetched.taken >= want then return false end
    if seq > room or (queue.holes > 0 and redis.call('HEXISTS', queue.base .. 'holes', State.whole(ms)) == 1) then
      break_frame(queue, ms, seq, blob, room, step)
    else
      local header = Frame.header_of(blob)
      Events.emit(queue, seq, { 'a', ms, seq, header and header[1] })
      local items, ids, set = fetched.items, fetched.ids, fetched.takes_set
      items[#items + 1], items[#items + 2], items[#items + 3] = ms, seq, blob
      ids[#ids + 1], ids[#ids + 2] = ms, header and { seq, header[1] } or seq
      set[#set + 1] = State.whole(ms)
      set[#set + 1] = header and cmsgpack.pack({ step.now_ms, '', step.owner, step.worker_name, step.claim, header }) or Holder.entry(step, Holder.FRAME)
      fetched.taken = fetched.taken + seq
      fetched.bytes = fetched.bytes + (Frame.bytes_apart(queue, blob) or #blob)
      queue.waiting = queue.waiting - seq
    end
  elseif field == 'r' and seq > WaitingList.REFERENCE_SEQ then
    local ok, ids = pcall(cmsgpack.unpack, blob)
    local sound = ok and type(ids) == 'table' and #ids > 0
    for i = 1, sound and #ids or 0 do sound = sound and type(ids[i]) == 'string' end
    if not sound then
      ids = ForeignEntries.readable_ids(blob)
      ids[#ids + 1] = ForeignEntries.set_aside(queue, entry)
      queue.waiting = queue.waiting + 1
    end
    ids = without_stale(queue, ids)
    local now, most = math.max(want - fetched.taken, 0), math.min(#ids, room)
    if most > now then most = now + count_fit(queue, { unpack(ids, now + 1, most) }) end
    local done = Fetched.take_records_within(queue, ids, most, step)
    queue.waiting = queue.waiting - done
    if done < #ids then push_rest(queue, { unpack(ids, done + 1) }) end
    redis.call('XDEL', queue.base .. 'log', entry[1])
  else
    Fetched.take_records(queue, { ForeignEntries.set_aside(queue, entry) }, step)
    return true
  end
  queue.cursor_ms, queue.cursor_seq = ms, seq
  return true
end

local function take_log(queue, want, most, step)
  local fetched = queue.fetched
  while queue.waiting > 0 and fetched.taken < most and not fetched.rest do
    -- eight entries have 2 MiB at most
    local count = math.max(math.min(math.ceil((most - fetched.taken) / 64), 8), 1)
    local entries = redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), '+', 'COUNT', count)
    if #entries == 0 then
      -- a call was refused half-way (queue/events), or a key was lost: nothing waits
      queue.waiting = 0
      Mend.end_of_log(queue)
      return
    end
    for _, entry in ipairs(entries) do
      if fetched.taken >= most or fetched.rest or not take_entry(queue, entry, want, most, step) then return end
    end
  end
end

-- The waiting list is empty. What is taken beyond the jobs that start now is bounded as in take_entry.
local function take_due(queue, want, most, step)
  local fetched = queue.fetched
  local promoted = queue.promoted
  if not promoted then return end
  local ids = promoted.ids
  while promoted.at < #ids and fetched.taken < most do
    local room = fetched.taken < want and math.min(want - fetched.taken, Fetched.records_chunk(queue, ids[promoted.at + 1], want - fetched.taken))
      or fetched.bytes < step.max_bytes and math.min(most - fetched.taken, Fetched.surplus_chunk(queue)) or 0
    if room == 0 then return end
    local some = { unpack(ids, promoted.at + 1, math.min(promoted.at + room, #ids)) }
    local fit = fetched.taken < want and #some or count_fit(queue, some)
    if fit == 0 then return end
    Fetched.take_records(queue, fit < #some and { unpack(some, 1, fit) } or some, step)
    promoted.at = promoted.at + fit
  end
end

-- Jobs without a group.
local function take_ungrouped(queue, want, most, step)
  take_front(queue, want, most, step)
  take_log(queue, want, most, step)
  if queue.waiting == 0 and queue.place > 0 then take_prioritized(queue, want, most, step) end
end

-- Takes up to `want` jobs, and `surplus` more where that breaks nothing.
local function fetch(queue, want, surplus, step)
  local fetched = queue.fetched
  if queue.holes > 0 and queue.waiting > 0 then Mend.mend_holes(queue) end
  take_due(queue, want, want + surplus, step)
  local has_groups = Groups.are_used(queue)
  if has_groups and Turns.are_fair(step) and not Turns.are_apart(step) then
    Turns.take_fairly(queue, want, step, function(count) take_ungrouped(queue, fetched.taken + count, fetched.taken + count, step) end)
  end
  take_ungrouped(queue, want, want + surplus, step)
  if has_groups and not (fetched.taken > 0 and Turns.are_apart(step)) then Turns.take(queue, want, want + surplus, step) end
  queue.active = queue.active + fetched.taken
  if rawget(fetched, 'takes_set') then WaitingList.call_in_chunks('HSET', queue.base .. 'takes', fetched.takes_set) end
  if rawget(fetched, 'active_set') then WaitingList.call_in_chunks('HSET', queue.base .. 'active', fetched.active_set) end
  if rawget(fetched, 'expiring') then WaitingList.call_in_chunks('ZREM', queue.base .. 'expiring', fetched.expiring) end
  Fetched.settle_keys(queue)
end

return {
  fetch = fetch,
}
