-- add_frames: new -> waiting, for frames of plain jobs, once however often it is sent. What `add` does, without what it does not need:
-- most adds are frames, and a call costs more than they do.
-- KEYS    base (also: state log front jobs events trims wake memo:<client>:<slot> apart:<first> stash:<client>:<slot>:<number>:<place>; where
--         there is a maximum length: prioritized delayed waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, then three a frame: n (jobs; negative: it lies apart), names (MessagePack: one text, or one a
--         job), blob, or stub of one that lies apart (lib/frame)
-- RETURNS {first, {}} | {-12, n, length, max_length} (lib/length)
-- ERRORS  -12 full      EVENTS added, waiting      COST O(frames)
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local Frame = require('frame')
local Length = require('length')
local Memo = require('memo')
local State = require('state')
local Strays = require('strays')
local Trims = require('trims')

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
    if redis.call('EXISTS', stash .. place) == 0 then error({ err = 'ERR no such key' }) end
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

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])

  local stash = base .. 'stash:' .. client .. ':' .. slot .. ':' .. State.whole(number) .. ':'
  local queue, known = Memo.open(base, client, slot, number)
  if known then
    drop_stash(stash, args)
    return known
  end

  if queue.max_length > 0 then
    local n = 0
    for at = FIRST_FRAME, #args, 3 do n = n + math.abs(tonumber(args[at])) end
    local full = Length.refuse_beyond(queue, n)
    if full then
      drop_stash(stash, args)
      return full
    end
  end

  local first, groups, are_apart = queue.id + 1, '', false
  for at = FIRST_FRAME, #args, 3 do
    local n = tonumber(args[at])
    if n < 0 then n, are_apart = -n, true end
    groups = groups .. '\148\161A' .. cmsgpack.pack(queue.id + 1, n) .. args[at + 1]
    queue.id, queue.waiting = queue.id + n, queue.waiting + n
  end

  if are_apart then settle_apart(queue, first, stash, args) end

  Trims.place_events(queue, 2 * (queue.id - first + 1), now_ms)

  -- in this order: a call that is refused half-way, for a command that the user may not give, leaves no job, nor a stream ahead of the
  -- state; the line may then seem longer than it is, until somebody gets to its end
  State.save_state(queue)
  redis.call('ZADD', base .. 'wake', 0, '0')
  Trims.write_events(queue, 2 * (queue.id - first + 1), groups, {})
  local next_first = first
  for at = FIRST_FRAME, #args, 3 do
    local n = tonumber(args[at])
    if n < 0 then n = -n end
    local id = State.entry_id(next_first, n)
    local written = redis.pcall('XADD', base .. 'log', id, 'f', args[at + 2])
    if type(written) == 'table' then
      Strays.clear_end_of_log(queue, id, written)
      State.save_state(queue)
      redis.call('XADD', base .. 'log', id, 'f', args[at + 2])
    end
    next_first = next_first + n
  end
  Memo.remember_packed(Memo.key_of(base, client, slot), struct.pack('<d', number) .. '\146' .. cmsgpack.pack(first) .. '\144')
  return { first, {} }
end
