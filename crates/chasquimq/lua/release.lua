-- release: a worker leaves. Gives up its lease and its memory, and wakes another worker if jobs wait.
-- KEYS    base (also: state wake lease:<owner> memo:<owner>:<slot>)
-- ARGV    owner
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 Worker#close (differs: a lease is a worker's)
local base = KEYS[1]
local owner = ARGV[1]

-- @include lib/state
-- @include lib/line

redis.call('DEL', base .. 'lease:' .. owner, base .. 'memo:' .. owner .. ':s', base .. 'memo:' .. owner .. ':w')
-- the marker may have been handed to this worker's wait
if S.waiting > 0 then wake() end
return 0
