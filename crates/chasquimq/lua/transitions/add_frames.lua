-- add_frames: new -> waiting, for frames of plain jobs, once however often it is sent. What `add` does, without what it does not need:
-- most adds are frames, and a call costs more than they do.
-- KEYS    base (also: state log front jobs events trims wake memo:<client>:<slot> apart:<first> stash:<client>:<slot>:<number>:<place>; where
--         there is a maximum length: prioritized delayed waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, then three a frame: n (jobs; negative: it lies apart), names (MessagePack: one text, or one a
--         job), blob, or stub of one that lies apart (jobs/frame)
-- RETURNS {first, {}} | {-12, n, length, max_length} (rules/length)
-- ERRORS  -12 full      EVENTS added, waiting      COST O(frames)
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local EventLog = require('event_log')
local ForeignEntries = require('foreign_entries')
local Frame = require('frame')
local Length = require('length')
local Memo = require('memo')
local StartOnAdd = require('start_on_add')
local State = require('state')
local WaitingList = require('waiting_list')
local StraightAdd = require('straight_add')

local FIRST_FRAME, LONG_MS = 5, '4000000000000'

-- First numbers of the frames that lie apart, of a batch that begins with `first`: the producer has put them at stash .. place.
local function firsts_apart(first, args)
  local firsts = {}
  for at = FIRST_FRAME, #args, 3 do
    local n = tonumber(args[at])
    if n < 0 then firsts[#firsts + 1] = first end
    first = first + math.abs(n)
  end
  return firsts
end

-- What the producer has put there becomes what a stub stands for, all or nothing. A key that this user's commands cannot make last lasts for
-- longer than a server does.
local function settle_apart(queue, first, stash, args)
  local firsts = firsts_apart(first, args)
  for place = 1, #firsts do
    if redis.call('EXISTS', stash .. place) == 0 then error({ err = 'STASHLOST it was dropped before the call came' }) end
  end
  for place, of in ipairs(firsts) do
    local key = Frame.key_apart(queue, of)
    redis.call('RENAME', stash .. place, key)
    local lasts = redis.pcall('PERSIST', key)
    if type(lasts) ~= 'number' then redis.call('PEXPIRE', key, LONG_MS) end
  end
  queue.apart = queue.apart + #firsts
end

-- Nothing is added, or was before: what the producer has put there need not wait for its end.
local function drop_stash(stash, args)
  for place = 1, #firsts_apart(0, args) do redis.pcall('UNLINK', stash .. place) end
end

-- Puts the frames at the end of the waiting list, of which the state tells already; number: of the first job.
local function append_to_log(queue, number, args)
  for at = FIRST_FRAME, #args, 3 do
    local n = math.abs(tonumber(args[at]))
    local id = State.entry_id(number, n)
    local written = redis.pcall('XADD', queue.base .. 'log', id, 'f', args[at + 2])
    if type(written) == 'table' then
      ForeignEntries.clear_end_of_log(queue, id, written)
      State.save_state(queue)
      redis.call('XADD', queue.base .. 'log', id, 'f', args[at + 2])
    end
    number = number + n
  end
end

-- Adds frames of any kind. Gives the number of the first job, or the answer of a queue that is full.
local function add(queue, now_ms, stash, args, worker)
  if queue.max_length > 0 then
    local n = 0
    for at = FIRST_FRAME, #args, 3 do n = n + math.abs(tonumber(args[at])) end
    local full = Length.refuse_beyond(queue, n)
    if full then
      drop_stash(stash, args)
      return nil, full
    end
  end

  local first, groups, are_apart = queue.id + 1, {}, false
  for at = FIRST_FRAME, #args, 3 do
    local n = tonumber(args[at])
    if n < 0 then n, are_apart = -n, true end
    groups[#groups + 1] = '\148\161A' .. cmsgpack.pack(queue.id + 1, n) .. args[at + 1]
    queue.id, queue.waiting = queue.id + n, queue.waiting + n
  end
  if are_apart then settle_apart(queue, first, stash, args) end

  local count = 2 * (queue.id - first + 1)
  EventLog.place_events(queue, count, now_ms)
  -- in this order: a call that is refused half-way, for a command that the user may not give, leaves no job, nor a stream ahead of the
  -- state; the waiting list may then seem longer than it is, until somebody gets to its end. Of a job that has started (step/straight_add) nobody gets
  -- there: its state is saved last.
  State.save_state(queue)
  if not worker then WaitingList.wake(queue) end
  EventLog.write_events(queue, count, table.concat(groups), {})
  append_to_log(queue, first, args)
  return first
end

-- worker: who waits, of whoever calls this for one (step/start_on_add), and tells others.
return function(keys, args, worker)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local memo = Memo.key_of(base, client, slot)

  local raw, known, remembered, left, delays
  if worker then
    raw, known, remembered, left, delays = Memo.read_beside(base, memo, number, StartOnAdd.look(base, worker))
  else
    raw, known = Memo.read_beside(base, memo, number)
  end

  local first, packed, full
  if raw and not known and #args == FIRST_FRAME + 2 then
    first, packed = StraightAdd.run(base, raw, args, worker, remembered, left, delays)
  end
  if not first then
    local stash = base .. 'stash:' .. client .. ':' .. slot .. ':' .. State.whole(number) .. ':'
    if known then
      drop_stash(stash, args)
      return cmsgpack.unpack(known)
    end
    first, full = add(State.open(base, nil, raw), now_ms, stash, args, worker)
    if full then return full end
  end
  Memo.remember_packed(memo, struct.pack('<d', number) .. '\146' .. (packed or cmsgpack.pack(first)) .. '\144')
  return { first, {} }
end
