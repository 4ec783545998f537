-- step_job: the round trip of somebody who works by hand. Ends one job, or takes the next one, or both, once however often it is sent.
-- KEYS    base (also: state meta log front takes frames holes gone jobs vitals traces large active delayed delays prioritized waiting-children
--         completed runs failed events trims wake limiter open metrics:<state> metrics:<state>:data
--         lease:<owner> memo:<client>:<lane> logged logs:<id> de:<id>; of parents,
--         in any queue: parents children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> waiting-children)
-- ARGV    now_ms (epoch ms), client, lane, number, token (0 = no lock), lease_ms, worker_name, fetch_next (1|0), outcomes (MessagePack,
--         lib/finish: none, or that of one job, as of a record), keeps (MessagePack, lib/finish),
--         limiter_max, limiter_ms (as in step), then the result if it is large (lib/finish)
-- RETURNS {0 | -1 | -2 | -3 | -4 | -6 | -9, gated 0|1, next_due_ms or -1, limited_ms, then the job taken, as read_jobs gives it}
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -4 pending children, -6 lock mismatch, -9 failed children
-- EVENTS  completed, failed, retries-exhausted, delayed, waiting, active, drained      COST O(log n)
-- SOURCE  BullMQ 6.7 Worker#getNextJob, Job#moveToCompleted, #moveToFailed
local base = KEYS[1]
local now_ms, client, lane, number, token, lease_ms = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local worker_name, fetch_next, outcomes, keeps = ARGV[7], ARGV[8], cmsgpack.unpack(ARGV[9]), cmsgpack.unpack(ARGV[10])
local limiter_max, limiter_ms = tonumber(ARGV[11]), tonumber(ARGV[12])
local large_results = #ARGV > 12 and { unpack(ARGV, 13) }
local take = token .. '#' .. client .. '.' .. lane .. '.' .. number

-- @include lib/memo
-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/metrics
-- @include lib/finish
-- @include lib/fetch
-- @include lib/limit
-- @include lib/turn
-- @include lib/locate
-- @include lib/lock
-- @include lib/describe

local function answer(gated, due, limited_ms, id)
  local reply = { 0, gated, due, limited_ms }
  local job = id and locate(id)
  -- a call that was carried out before may find that the job has gone elsewhere since
  if job and job.state == 'active' and owner_of(job) == take then describe(job, reply) end
  return reply
end

local known = recall(client, lane, number)
if known then return answer(known[1], known[2], known[3], known[4]) end

local W = { now_ms = now_ms, takes_as = take, claim = ANY_CLAIM, worker_name = worker_name, keeps = keeps, max_bytes = 0,
  limiter_max = limiter_max, limiter_ms = limiter_ms, large_results = large_results }
local outcome = outcomes[1]
if outcome then
  local job = locate(type(outcome[6]) == 'table' and outcome[6][1] or outcome[6])
  -- whoever asks is told of the children first
  local code = families and job and job.record and outcome[1] ~= 'f' and families.code_of(job.id, now_ms) or check_lock(job, token)
  if code ~= 0 then return { code, 0, -1, 0 } end
  W.owner = owner_of(job)
  detach(job)
  free_lock(W.owner)
end
local _, due, gated, limited_ms = turn(outcomes, fetch_next == '1' and 1 or -1, 0, W)

local id
if R.taken > 0 then
  local first, place = R.ids[1], R.ids[2]
  id = first == 0 and place[1] or id_in(type(place) == 'table' and place[2] or nil, first)
  if token ~= '0' then redis.call('SET', base .. 'lease:' .. take, 1, 'PX', lease_ms) end
end
remember(client, lane, number, { gated, due or -1, limited_ms, id })
return answer(gated, due or -1, limited_ms, id)
