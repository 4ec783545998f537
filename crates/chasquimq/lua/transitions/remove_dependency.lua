-- remove_dependency: no change of the job. What waits for it does not any more.
-- KEYS    base (also: state jobs vitals active log takes runs holes completed failed delayed prioritized waiting-children memo:<client>:<slot>; of its parent's queue: state meta jobs vitals log front active delayed delays prioritized
--         waiting-children events trims wake parents children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, id
-- RETURNS 0 | 1 nothing waits for it | -1 | -5
-- ERRORS  -1 missing job, -5 missing parent      EVENTS waiting      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#removeChildDependency
-- FLAGS   allow-oom
local Events = require('events')
local Find = require('find')
local Locate = require('locate')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local SiblingRanges = require('sibling_ranges')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local job = Find.locate(queue, id)
  if not job then return -1 end
  local known_of = job.record and Stored.fields(redis.call('HGET', base .. 'vitals', id)) or Locate.frame_fields(queue, job)
  local pa = known_of.pa
  if not pa or redis.call('HEXISTS', pa[1] .. 'jobs', pa[2]) == 0 then return -5 end
  if pa[4] then SiblingRanges.unfold_pending(pa[1], pa[2], Parents.range_of(queue, base, id, pa)) end
  if redis.call('SISMEMBER', pa[1] .. 'children:' .. pa[2], Parents.child_key(queue, base, id)) == 0 then return 1 end
  local fields = Locate.detach(queue, job)
  fields.pa = nil
  if next(fields) then
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(fields))
  else
    redis.call('HDEL', base .. 'vitals', id)
  end
  Parents.remove_dependency(queue, base, pa, id)
  Parents.settle_parents(queue, now_ms)
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
