-- promote_jobs: delayed -> waiting, for the jobs that are due first; a bounded step a call.
-- KEYS    base (also: state meta delayed log events trims wake)
-- ARGV    now_ms (epoch ms), count (jobs)
-- RETURNS {promoted, delayed jobs left}
-- ERRORS  none      EVENTS waiting      COST O(count * log delayed)
-- SOURCE  BullMQ 6.7 Queue#promoteJobs
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, count = tonumber(ARGV[1]), tonumber(ARGV[2])

-- @include lib/state
-- @include lib/events
-- @include lib/line

local ids = redis.call('ZRANGE', base .. 'delayed', 0, count - 1)
if #ids == 0 then return { 0, 0 } end
call_in_chunks('ZREM', base .. 'delayed', ids)
append_references(ids)
emit(#ids, { 'X', 'waiting', ids, 'prev', 'delayed' })
wake()
flush_events(now_ms)
return { #ids, redis.call('ZCARD', base .. 'delayed') }
