-- remove_children: what a job waits for -> gone, and what that waits for, but for what somebody holds and what has failed or completed. Of a great
-- family nothing goes here: src/queue/removal.rs removes it in steps.
-- KEYS    base (also, and of the queues of its children: state meta jobs vitals traces active log front takes frames apart:<first> runs holes gone
--         completed failed delayed delays prioritized waiting-children events trims wake logged parents lease:<owner> logs:<id> de:<id>
--         children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id
-- RETURNS 0 | 2 there are too many of them for one call
-- ERRORS  none      EVENTS removed, waiting      COST O(log n) a child, 100 at most, O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#removeUnprocessedChildren
-- FLAGS   allow-oom
local Events = require('events')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Remove = require('remove')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  Remove.start(queue)
  Remove.survey(queue, id, false, false)
  if queue.call.family.count > Remove.MOST_FAMILY then return 2 end
  Remove.remove_pending(queue, id, now_ms)
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
