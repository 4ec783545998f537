-- retry_job: failed | completed -> waiting | prioritized.
-- KEYS    base (also: state meta jobs vitals large active log front takes frames runs holes completed failed delayed prioritized
--         waiting-children events trims wake; of its parent: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), id, state (failed | completed), front (1 = head of the line), reset_made (1|0), reset_started (1|0)
-- RETURNS 0 | -1 | -3
-- ERRORS  -1 missing job, -3 not in that state      EVENTS waiting      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#retry
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id, state, front, reset_made, reset_started = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/parents
-- @include lib/large

local job = locate(id)
if not job then return -1 end
if job.state ~= state or (state ~= 'failed' and state ~= 'completed') then return -3 end
local vitals = detach(job)
redis.call('ZREM', base .. state, id)
if state == 'completed' then S.completed = S.completed - 1 end
forget_end(id, vitals, state)
if reset_made == '1' then vitals.am = nil end
if reset_started == '1' then vitals.as = nil end
if vitals.pa then wait_again(vitals.pa, id, state) end
store_vitals(id, vitals)
if front == '1' then enter_front({ id }, {}) else enter_line({ id }) end
wake()
emit_job('waiting', id, state)
flush_events(now_ms)
return 0
