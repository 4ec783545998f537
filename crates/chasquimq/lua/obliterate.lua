-- obliterate: a paused queue -> nothing, a bounded step a call.
-- KEYS    base (also: state meta log front takes frames holes gone jobs vitals traces active delayed delays prioritized waiting-children
--         completed failed runs events trims wake stalled logged logs:<id> de:<id> limiter open)
-- ARGV    count (records a step), force (1 = active jobs too)
-- RETURNS 1 call again | 0 done | -1 | -2
-- ERRORS  -1 not paused, -2 active jobs      EVENTS none      COST O(count)
-- SOURCE  BullMQ 6.7 Queue#obliterate
-- FLAGS   allow-oom
local base = KEYS[1]
local count, force = tonumber(ARGV[1]), ARGV[2]

-- @include lib/state
-- @include lib/records

if not redis.call('HGET', base .. 'meta', 'paused') then return -1 end
if S.active > 0 and force ~= '1' then return -2 end

-- records go in steps because each may have a log and a deduplication key; everything else is unlinked whole, which frees memory in the background
local cursor, fields = '0', {}
repeat
  local page = redis.call('HSCAN', base .. 'jobs', cursor, 'COUNT', count)
  cursor, fields = page[1], page[2]
until #fields > 0 or cursor == '0'
if #fields > 0 then
  local ids = {}
  for i = 1, #fields, 2 do ids[#ids + 1] = fields[i] end
  drop_records(ids)
  return 1
end
local keys = {}
for _, key in ipairs({ 'state', 'log', 'front', 'takes', 'frames', 'holes', 'gone', 'jobs', 'vitals', 'traces', 'active', 'delayed',
  'prioritized', 'waiting-children', 'delays', 'completed', 'failed', 'runs', 'events', 'trims', 'wake', 'stalled', 'logged',
  'limiter', 'open', 'meta' }) do
  keys[#keys + 1] = base .. key
end
redis.call('UNLINK', unpack(keys))
return 0
