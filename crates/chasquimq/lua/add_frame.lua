-- add_frame: new -> waiting, for one frame of plain jobs, once however often it is sent. What `add` does, without what it does not
-- need: most adds are one frame, and a call costs more than the frame.
-- KEYS    base (also: state log events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, n (jobs), names (MessagePack: one text, or one a job), blob (lib/frame)
-- RETURNS {first, {}}
-- ERRORS  none      EVENTS added, waiting      COST O(1)
-- SOURCE  BullMQ 6.7 Queue#add, #addBulk (differs: one atomic batch; ids of a batch are consecutive)
local base = KEYS[1]
local now_ms, client, slot, number, n = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local names, blob = ARGV[6], ARGV[7]

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/trims

local first = S.id + 1
S.id, S.waiting = S.id + n, S.waiting + n

-- lib/events, for one group
if now_ms > S.event_ms then
  S.event_ms, S.event_seq = now_ms, 2 * n
else
  S.event_seq = S.event_seq + 2 * n
end
count_events(2 * n)

-- in this order: a call that is refused half-way, for a command that the user may not give, leaves no job, nor a stream ahead of the
-- state; the line may then seem longer than it is, until somebody gets to its end
save_state()
redis.call('ZADD', base .. 'wake', 0, '0')
redis.call('XADD', base .. 'events', entry_id(S.event_ms, S.event_seq), 'e',
  '\148\161A' .. cmsgpack.pack(first) .. cmsgpack.pack(n) .. names)
redis.call('XADD', base .. 'log', entry_id(first, n), 'f', blob)
local reply = { first, {} }
remember(client, slot, number, reply)
return reply
