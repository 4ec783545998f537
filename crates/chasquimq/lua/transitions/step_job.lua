-- step_job: the round trip of somebody who works manually. Ends one job, or takes the next one, or both, once however often it is sent.
-- KEYS    base (also: state meta log front takes frames apart:<first> holes gone jobs vitals traces large active delayed delays expiring key-limit:<key> key-line:<key> prioritized waiting-children
--         completed runs failed events trims wake limiter open metrics:<state> metrics:<state>:data
--         lease:<owner> memo:<client>:<slot> logged logs:<id> de:<id>; of parents,
--         in any queue: parents children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> waiting-children)
-- ARGV    now_ms (epoch ms), client, slot, number, token (0 = no lock), lease_ms, worker (id of the one that is told of the job taken, '' = none),
--         worker_name, fetch_next (1|0), outcomes (MessagePack, step/finish: none, or that of one job, as of a record),
--         keeps (MessagePack, step/finish), limits (MessagePack, as in step), then the result if it is large (step/finish)
-- RETURNS {0 | -1 | -2 | -3 | -4 | -6 | -9, gated 0|1, next_due_ms or -1, limited_ms, then the job taken, as read_jobs gives it}
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -4 pending children, -6 lock mismatch, -9 failed children
-- EVENTS  completed, failed, retries-exhausted, delayed, waiting, active, drained      COST O(log n)
-- SOURCE  BullMQ 6.7 Worker#getNextJob, Job#moveToCompleted, #moveToFailed
-- FLAGS   allow-oom
local Describe = require('describe')
local Events = require('events')
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local Locate = require('locate')
local Lock = require('lock')
local Memo = require('memo')
local Parents = require('parents')
local RoundTrip = require('round_trip')
local WaitingList = require('waiting_list')

-- Whoever takes jobs by hand looks for none while there is one: somebody else is to know what is due within so long, or was delayed just now. Later, all
-- who wait have looked by themselves.
local HORIZON_MS = 60000

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, token, lease_ms = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5], args[6]
  local worker, worker_name, fetch_next, outcomes, keeps = args[7], args[8], args[9], cmsgpack.unpack(args[10]), cmsgpack.unpack(args[11])
  local limits = cmsgpack.unpack(args[12])
  local large = #args > 12 and { unpack(args, 13) }
  local owner = token .. '#' .. client .. '.' .. slot .. '.' .. number

  local queue, known = Memo.open(base, client, slot, number)

  local function answer(gated, due, limited_ms, id)
    local reply = { 0, gated, due, limited_ms }
    local job = id and Find.locate(queue, id)
    -- a call that was carried out before may find that the job has gone elsewhere since
    if job and job.state == 'active' and Lock.owner_of(job) == owner then Describe.describe(queue, job, reply) end
    return reply
  end

  if known then return answer(known[1], known[2], known[3], known[4]) end

  local server_ms = Groups.are_used(queue) and Groups.server_ms() or now_ms
  local step = { now_ms = now_ms, server_ms = server_ms, ahead_ms = now_ms - server_ms, takes_as = owner, claim = Frame.ANY_CLAIM, worker_name = worker_name, keeps = keeps, max_bytes = 0,
    limiter_max = limits ~= 0 and limits[1] or 0, limiter_ms = limits ~= 0 and limits[2] or 0, group_rules = limits ~= 0 and limits[3],
    asks_due = true, large = large }
  local outcome = outcomes[1]
  if outcome then
    local job = Find.locate(queue, type(outcome[6]) == 'table' and outcome[6][1] or outcome[6])
    -- whoever asks is told of the children first
    local code = queue.flows == 1 and job and job.record and outcome[1] ~= 'f' and Parents.children_code(queue, job.id, now_ms) or Lock.check_lock(queue, job, token)
    if code ~= 0 then
      RoundTrip.promote_before_retry(queue, outcomes, now_ms)
      Events.flush_events(queue, now_ms)
      return { code, 0, -1, 0 }
    end
    step.owner = Lock.owner_of(job)
    local fields = Locate.detach(queue, job)
    -- tries are counted here: the caller's job may be an older look at it
    if outcome[1] == 'f' then outcome[11] = (fields.am or 0) + 1 end
    Lock.free_lock(queue, step.owner)
  end
  local _, due, gated, limited_ms = RoundTrip.run(queue, outcomes, fetch_next == '1' and 1 or -1, 0, step)
  if due and queue.fetched.taken > 0 then
    local finishing = queue.finishing
    if due < now_ms + HORIZON_MS or (finishing and rawget(finishing, 'delayed')) then WaitingList.wake(queue) end
    due = nil
  end

  local id
  if queue.fetched.taken > 0 then
    local first, place = queue.fetched.ids[1], queue.fetched.ids[2]
    id = first == 0 and place[1] or Frame.id_in(type(place) == 'table' and place[2] or nil, first)
    if token ~= '0' then redis.call('SET', base .. 'lease:' .. owner, worker, 'PX', lease_ms) end
  end
  Memo.remember(base, client, slot, number, { gated, due or -1, limited_ms, id })
  return answer(gated, due or -1, limited_ms, id)
end
