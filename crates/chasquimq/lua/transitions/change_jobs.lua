-- change_jobs: removes, cancels, retries, promotes or moves the jobs of a state that a filter picks: any state -> gone, any state but completed -> failed (lists/cancel),
-- failed | completed -> waiting, delayed -> waiting, any state but active and waiting-children -> another queue. Those that start first, or that ended first, come first; a bounded step a call.
-- KEYS    base (also: state meta log front takes frames apart:<first> holes gone jobs vitals traces large active delayed prioritized completed failed runs grouped
--         group:<group> events trims wake logged parents waiting-children lease:<owner> cancels:<owner> logs:<id> de:<id> memo:<client>:<slot> schedulers; of parents:
--         children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>; in other queues: state meta log front jobs vitals large
--         delayed delays expiring prioritized grouped groups turns group:<group> group-settings events trims wake)
-- ARGV    now_ms (epoch ms), client, slot, number, action (remove | cancel | retry | promote | move), state, filter (MessagePack, rules/filter), place (JSON, lists/walk; '' at
--         first), room (most jobs to pick), reset (1 = tries and starts of retried jobs are counted from 0 again; what is cancelled
--         and does not run is gone), target (base of the queue that jobs are moved to; why they are cancelled; or '')
-- RETURNS {place ('' = done), jobs looked at, jobs picked, ids of those that were changed: what somebody holds stays, the next job of a scheduler, and what
--         is of other jobs and cannot be moved (lists/hand_over)}
-- ERRORS  none      EVENTS cleaned, failed, waiting, removed, and in the other queue added, waiting, delayed      COST O(500 records, or 2000 jobs of frames, or 1 MiB of them, or 250 jobs picked)
-- SOURCE  none: an extension
-- FLAGS   allow-oom
local Cancel = require('cancel')
local Events = require('events')
local Filter = require('filter')
local Find = require('find')
local HandOver = require('hand_over')
local Large = require('large')
local Locate = require('locate')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Prioritized = require('prioritized')
local State = require('state')
local TakeOut = require('take_out')
local Walk = require('walk')
local WaitingList = require('waiting_list')

-- Jobs that one call changes.
local MOST = 250
-- What gives jobs new records reads all of them.
local READS_DATA = { cancel = true, retry = true, move = true }

local function enter(queue, ids, from)
  if #ids == 0 then return end
  Prioritized.enter(queue, ids)
  for _, id in ipairs(ids) do Events.emit_job(queue, 'waiting', id, from) end
  WaitingList.wake(queue)
end

local function retry(queue, state, jobs, is_reset)
  local ids = {}
  for _, met in ipairs(jobs) do
    -- where a job of a run lies changes with those before it
    local job = met.record and met or Find.locate(queue, met.id)
    if job and job.state == state then
      local fields = Locate.detach(queue, job)
      redis.call('ZREM', queue.base .. state, job.id)
      if state == 'completed' then queue.completed = queue.completed - 1 end
      Large.forget_end(queue, job.id, fields, state)
      if is_reset then fields.am, fields.as = nil, nil end
      if fields.pa then Parents.wait_again(queue, fields.pa, job.id, state) end
      Locate.store_fields(queue, job.id, fields)
      ids[#ids + 1] = job.id
    end
  end
  enter(queue, ids, state)
  return ids
end

local function promote(queue, jobs)
  local ids = {}
  for i, job in ipairs(jobs) do ids[i] = job.id end
  WaitingList.call_in_chunks('ZREM', queue.base .. 'delayed', ids)
  enter(queue, ids, 'delayed')
  return ids
end

local function remove(queue, state, jobs, now_ms)
  local ids = TakeOut.drop(queue, state, jobs, now_ms)
  if #ids > 0 then Events.emit(queue, 1, { 'E', 'cleaned', 'count', State.whole(#ids) }) end
  return ids
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, action = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local state, filter, place, room, reset, target = args[6], cmsgpack.unpack(args[7]), args[8], tonumber(args[9]), args[10], args[11]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local looked, picked, seen = 0, {}, {}
  local function meet(job)
    looked = looked + 1
    -- one may be met in two places, of which one is stale
    if not seen[job.id] and Filter.picks(queue, filter, job) then
      seen[job.id] = true
      picked[#picked + 1] = job
    end
    return #picked < math.min(room, MOST)
  end
  Walk.start(queue, { state = state, filter = filter, meet = meet, reads_data = READS_DATA[action] }, place == '' and {} or cjson.decode(place))
  local done, ids = Walk.go(queue), nil
  if action == 'retry' then
    ids = retry(queue, state, picked, reset == '1')
  elseif action == 'promote' then
    ids = promote(queue, picked)
  elseif action == 'move' then
    ids = HandOver.give(queue, state, picked, target, now_ms)
  elseif action == 'cancel' then
    ids = Cancel.cancel(queue, state, picked, target, reset == '1', now_ms)
  else
    ids = remove(queue, state, picked, now_ms)
  end
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  local reply = { done and '' or cjson.encode(queue.walking.place), looked, #picked, ids }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
