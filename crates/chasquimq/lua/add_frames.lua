-- add_frames: new -> waiting, for frames of plain jobs, once however often it is sent. What `add` does, without what it does not need:
-- most adds are frames, and a call costs more than they do.
-- KEYS    base (also: state log front jobs events trims wake memo:<client>:<slot>; where there is a maximum length: prioritized delayed
--         waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, then three a frame: n (jobs), names (MessagePack: one text, or one a job), blob
--         (lib/frame)
-- RETURNS {first, {}} | {-12, n, length, max_length} (lib/length)
-- ERRORS  -12 full      EVENTS added, waiting      COST O(frames)
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local base = KEYS[1]
local now_ms, client, slot, number = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local FIRST_FRAME = 5

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/length
-- @include lib/trims

if S.max_length > 0 then
  local n = 0
  for at = FIRST_FRAME, #ARGV, 3 do n = n + tonumber(ARGV[at]) end
  local full = refuse_beyond(n)
  if full then return full end
end

local first, groups = S.id + 1, ''
for at = FIRST_FRAME, #ARGV, 3 do
  local n = tonumber(ARGV[at])
  groups = groups .. '\148\161A' .. cmsgpack.pack(S.id + 1) .. cmsgpack.pack(n) .. ARGV[at + 1]
  S.id, S.waiting = S.id + n, S.waiting + n
end

place_events(2 * (S.id - first + 1), now_ms)

-- in this order: a call that is refused half-way, for a command that the user may not give, leaves no job, nor a stream ahead of the
-- state; the line may then seem longer than it is, until somebody gets to its end
save_state()
redis.call('ZADD', base .. 'wake', 0, '0')
write_events(2 * (S.id - first + 1), groups, {})
local next_first = first
for at = FIRST_FRAME, #ARGV, 3 do
  local n = tonumber(ARGV[at])
  local id = entry_id(next_first, n)
  local written = redis.pcall('XADD', base .. 'log', id, 'f', ARGV[at + 2])
  if type(written) == 'table' then
-- @include lib/strays
    clear_end_of_log(id, written)
    save_state()
    redis.call('XADD', base .. 'log', id, 'f', ARGV[at + 2])
  end
  next_first = next_first + n
end
local reply = { first, {} }
remember(client, slot, number, reply)
return reply
