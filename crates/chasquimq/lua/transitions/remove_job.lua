-- remove_job: any state but active -> gone, with the job's children where that is wanted: all of them, or none when somebody holds one
-- that is waited for. Of a great family nothing goes here: src/queue/removal.rs removes it in steps.
-- KEYS    base (also, and of the queues of its children and of its parent: state meta jobs vitals traces active log front takes frames apart:<first> runs
--         holes gone completed failed delayed delays prioritized waiting-children events trims wake logged parents lease:<owner> logs:<id>
--         de:<id> children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> schedulers memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, with_children (1|0)
-- RETURNS 1 removed, or there was no such job | 0 somebody holds it, or a child | 2 there are too many of them for one call | -8
-- ERRORS  -8 the latest iteration of a scheduler      EVENTS removed, waiting      COST O(log n) a job, 100 at most, O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#remove, Queue#remove
-- FLAGS   allow-oom
local Events = require('events')
local Find = require('find')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local PendingIteration = require('pending_iteration')
local Remove = require('remove')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, with_children = args[5], args[6] == '1'

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  if PendingIteration.is_pending_iteration(queue, id) then return -8 end
  Remove.start(queue)
  if with_children then
    Remove.survey(queue, id, true, true)
  else
    local job = Find.locate(queue, id)
    queue.call.family.held = job and Remove.is_held(queue, job)
  end
  if queue.call.family.count > Remove.MOST_FAMILY then return 2 end
  if queue.call.family.held then return 0 end
  Remove.remove_family(queue, id, with_children, now_ms)
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 1)
  return 1
end
