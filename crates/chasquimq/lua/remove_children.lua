-- remove_children: what a job waits for -> gone, and what that waits for, but for what somebody holds and what has failed or completed. Of a great
-- family nothing goes here: src/removal.rs removes it in steps.
-- KEYS    base (also, and of the queues of its children: state meta jobs vitals traces active log front takes frames runs holes gone
--         completed failed delayed delays prioritized waiting-children events trims wake logged parents lease:<owner> logs:<id> de:<id>
--         children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), id
-- RETURNS 0 | 2 there are too many of them for one call
-- ERRORS  none      EVENTS removed, waiting      COST O(log n) a child, 100 at most, O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#removeUnprocessedChildren
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id = tonumber(ARGV[1]), ARGV[2]

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/lock
-- @include lib/parents
-- @include lib/remove

survey(id, false, false)
if K.count > MOST_KIN then return 2 end
remove_pending(id, now_ms)
flush_visited(now_ms)
flush_events(now_ms)
return 0
