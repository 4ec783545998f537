-- remove_job: any state but active -> gone, with the job's children where that is wanted: all of them, or none when somebody holds one
-- that is waited for. Of a great family nothing goes here: src/removal.rs removes it in steps.
-- KEYS    base (also, and of the queues of its children and of its parent: state meta jobs vitals traces active log front takes frames runs
--         holes gone completed failed delayed delays prioritized waiting-children events trims wake logged parents lease:<owner> logs:<id>
--         de:<id> children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> schedulers)
-- ARGV    now_ms (epoch ms), id, with_children (1|0)
-- RETURNS 1 removed, or there was no such job | 0 somebody holds it, or a child | 2 there are too many of them for one call | -8
-- ERRORS  -8 the latest iteration of a scheduler      EVENTS removed, waiting      COST O(log n) a job, 100 at most, O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#remove, Queue#remove
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, id, with_children = tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'

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
-- @include lib/pending

if is_pending_iteration(id) then return -8 end
if with_children then
  survey(id, true, true)
else
  local job = locate(id)
  K.held = job and is_held(job)
end
if K.count > MOST_KIN then return 2 end
if K.held then return 0 end
remove_family(id, with_children, now_ms)
flush_visited(now_ms)
flush_events(now_ms)
return 1
