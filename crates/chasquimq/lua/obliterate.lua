-- obliterate: a paused queue -> nothing, a bounded step a call.
-- KEYS    base (also: state meta log front takes frames holes gone jobs vitals traces active delayed delays prioritized waiting-children
--         completed failed runs events trims wake stalled logged metrics:completed metrics:failed
--         metrics:completed:data metrics:failed:data logs:<id> de:<id> limiter open)
-- ARGV    count (logs or records a step), force (1 = active jobs too), cursor (of the records; '0' at first)
-- RETURNS a cursor: call again with it | 0 done | -1 | -2
-- ERRORS  -1 not paused, -2 active jobs      EVENTS none      COST O(count)
-- SOURCE  BullMQ 6.7 Queue#obliterate
-- FLAGS   allow-oom
local base = KEYS[1]
local count, force, cursor = math.min(tonumber(ARGV[1]), 1000), ARGV[2], ARGV[3]

-- @include lib/state
-- @include lib/records

if not redis.call('HGET', base .. 'meta', 'paused') then return -1 end
if S.active > 0 and force ~= '1' then return -2 end

-- logs and deduplication keys go in steps because each is a key; everything else is unlinked whole, which frees memory in the background
local logged = redis.call('SPOP', base .. 'logged', count)
if #logged > 0 then
  for i, id in ipairs(logged) do logged[i] = base .. 'logs:' .. id end
  redis.call('UNLINK', unpack(logged))
  return cursor
end
local page = redis.call('HSCAN', base .. 'vitals', cursor, 'COUNT', count)
local ids = {}
for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end
for from = 1, #ids, 1000 do release_keys(ids, from, math.min(from + 999, #ids)) end
if page[1] ~= '0' then return page[1] end
local keys = {}
for _, key in ipairs({ 'state', 'log', 'front', 'takes', 'frames', 'holes', 'gone', 'jobs', 'vitals', 'traces', 'active', 'delayed',
  'prioritized', 'waiting-children', 'delays', 'completed', 'failed', 'runs', 'events', 'trims', 'wake', 'stalled', 'logged',
  'limiter', 'open', 'metrics:completed', 'metrics:failed', 'metrics:completed:data', 'metrics:failed:data', 'meta' }) do
  keys[#keys + 1] = base .. key
end
redis.call('UNLINK', unpack(keys))
return 0
