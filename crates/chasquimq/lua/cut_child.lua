-- cut_child: no change of the job. What waits for it does not any more.
-- KEYS    base (also: state jobs vitals active log takes runs holes completed failed delayed prioritized waiting-children memo:<client>:<slot>; of its parent's queue: state meta jobs vitals log front active delayed delays prioritized
--         waiting-children events trims wake parents children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, id
-- RETURNS 0 | 1 nothing waits for it | -1 | -5
-- ERRORS  -1 missing job, -5 missing parent      EVENTS waiting      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#removeChildDependency
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, client, slot, number, id = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/parents

local job = locate(id)
if not job then return -1 end
local known_of = job.record and stored().vitals(redis.call('HGET', base .. 'vitals', id)) or frame_vitals(job)
local pa = known_of.pa
if not pa or redis.call('HEXISTS', pa[1] .. 'jobs', pa[2]) == 0 then return -5 end
if pa[4] then unfold_pending(pa[1], pa[2], span_of(base, id, pa)) end
if redis.call('SISMEMBER', pa[1] .. 'children:' .. pa[2], child_key(base, id)) == 0 then return 1 end
local vitals = detach(job)
vitals.pa = nil
if next(vitals) then
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
else
  redis.call('HDEL', base .. 'vitals', id)
end
cut_child(base, pa, id)
settle_parents(now_ms)
flush_visited(now_ms)
flush_events(now_ms)
remember(client, slot, number, 0)
return 0
