-- remove_descendants: any state but active -> gone, for children that are named with their parents: a step of the removal of a great family, which
-- removes parents before their children (src/queue/removal.rs). What others see between two steps: those that are left, as jobs without a
-- parent, or as what a parent that stays still waits for. A worker may take them meanwhile, and then they stay.
-- KEYS    base (also, and of the queues of the children and of their parents: state meta jobs vitals traces active log front takes frames apart:<first>
--         runs holes gone completed failed delayed delays prioritized waiting-children events trims wake logged parents lease:<owner>
--         logs:<id> de:<id> children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>; of this queue: memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, ended (1: also what has failed or completed), kin (MessagePack array, three values a child: base of the queue
--         of its parent, the parent's id, the child's key)
-- RETURNS {1 it has gone | 0 it stays, with those below it, or is no child of that parent, ...}
-- ERRORS  none      EVENTS removed, waiting      COST O(log n) a child, O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#remove, Job#removeUnprocessedChildren (differs: steps)
-- FLAGS   allow-oom
local Events = require('events')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Remove = require('remove')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local ended, kin = args[5] == '1', cmsgpack.unpack(args[6])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local gone, stays = {}, {}
  for i = 1, #kin, 3 do
    local parent_base, parent, key = kin[i], kin[i + 1], kin[i + 2]
    local of, id, job
    -- what is below one that stays stays
    if not stays[Parents.child_key(queue, parent_base, parent)] then of, id, job = Remove.find_child(queue, key, parent_base, parent) end
    local has_gone = of and OtherQueues.in_queue(queue, of, function(queue) return Remove.remove_child(queue, id, job, ended) end)
    stays[key] = not has_gone
    gone[#gone + 1] = has_gone and 1 or 0
  end
  Parents.settle_parents(queue, now_ms)
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, gone)
  return gone
end
