-- park_job: active -> waiting-children, by the one who holds the job, while it waits for children.
-- KEYS    base (also: state meta jobs vitals active log front takes frames runs holes completed failed delayed prioritized waiting-children
--         events trims wake lease:<owner> children:<id> spans:<id> faults:<id> returned:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, token (0 = anyone), child (its key: the one to wait for; '' = any)
-- RETURNS 0 | 1 it waits for no child, or not for that one | -1 | -2 | -3 | -6 | -9
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -6 lock mismatch, -9 failed children
-- EVENTS  waiting-children      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#moveToWaitingChildren
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, client, slot, number = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local id, token, child = ARGV[5], ARGV[6], ARGV[7]

-- @include lib/memo
local known = recall(client, slot, number)
if known then return known end

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/lock
-- @include lib/spans

local job = locate(id)
if not job then return -1 end
if redis.call('EXISTS', base .. 'faults:' .. id) == 1 then return -9 end
local children, spans = base .. 'children:' .. id, base .. 'spans:' .. id
if redis.call('EXISTS', children, spans) == 0 then return 1 end

local function is_in_span()
  local front, number = child:sub(1, -13), tonumber(child:sub(-12), 16)
  for _, span in ipairs(number and redis.call('SMEMBERS', spans) or {}) do
    local first, count, front_of = read_span(span)
    if front == front_of and number >= first and number < first + count then return key_in_span(front, number) == child end
  end
end

if child ~= '' and redis.call('SISMEMBER', children, child) == 0 and not is_in_span() then return 1 end
local code = check_lock(job, token)
if code ~= 0 then return code end
local vitals = detach(job)
redis.call('HDEL', base .. 'active', id)
S.active = S.active - 1
free_lock(job.active[3])
stored().start(vitals, job.active)
-- its own delay counted when it started first
vitals.d = nil
store_vitals(id, vitals)
redis.call('ZADD', base .. 'waiting-children', now_ms, id)
emit_job('waiting-children', id, 'active')
wake()
flush_events(now_ms)
remember(client, slot, number, 0)
return 0
