-- clean_jobs: any state -> gone, for the jobs that a filter picks; a bounded step a call. Active jobs go when their worker is gone, but for the latest of a
-- scheduler.
-- KEYS    base (also: state meta log front takes frames apart:<first> holes gone jobs vitals traces active delayed prioritized completed failed runs
--         events trims logged parents waiting-children lease:<owner> logs:<id> de:<id> memo:<client>:<slot> schedulers; of parents: children:<id>
--         processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>; in other queues: state meta front jobs vitals delayed delays wake)
-- ARGV    now_ms (epoch ms), client, slot, number, state (wait | group:<group> | active | delayed | prioritized | completed | failed |
--         waiting-children), filter
--         (MessagePack, rules/filter), room (most jobs to look at, over all calls), cursor (MessagePack, lists/clear; '' at first; for active
--         jobs those that list_active found: {ids, last (1: no others come after these)}), untold
--         (jobs removed and not in a `cleaned` event yet; -1 = neither events nor ids are wanted)
-- RETURNS {ids, count, looked (of active jobs those of the call, from the first), cursor ('' = done), untold}
-- ERRORS  none      EVENTS cleaned, one for 10000 jobs      COST O(500 records, or 100 frames)
-- SOURCE  BullMQ 6.7 Queue#clean, #drain (differs: steps, each of which is atomic; what is added meanwhile stays)
-- FLAGS   allow-oom
local Active = require('active')
local Clear = require('clear')
local Events = require('events')
local Find = require('find')
local Frame = require('frame')
local Lock = require('lock')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local PendingIteration = require('pending_iteration')
local ReadBudget = require('read_budget')
local Records = require('records')
local State = require('state')
local TakeOut = require('take_out')
local WaitingList = require('waiting_list')

-- Jobs that one event tells of.
local BATCH = 10000

local function is_abandoned(queue, job, before_ms)
  return job and job.state == 'active' and not Active.is_alive(queue, Lock.owner_of(job)) and (job.active or job.holder)[1] <= before_ms
end

local function clear_active(queue, found, before_ms, room)
  local cleared, bytes, last_frame, active = queue.cleared, 0, nil, queue.active
  for _, id in ipairs(found.ids) do
    if cleared.looked == room or bytes > ReadBudget.MAX_BYTES then return false end
    cleared.looked = cleared.looked + 1
    local job = Find.locate(queue, id)
    if job and job.blob and job.first ~= last_frame then bytes, last_frame = bytes + #job.blob, job.first end
    if is_abandoned(queue, job, before_ms) and not PendingIteration.is_pending_iteration(queue, id) then
      TakeOut.leave_active(queue, job)
      Clear.note_stale(queue, id, job.record, Frame.parent_in(job.header, job.first, job.offset))
    end
  end
  -- what waits may start in their place
  if queue.active < active then WaitingList.wake_for_work(queue) end
  return found.last == 1
end

local function start_walk(queue, state)
  if state == 'wait' then return Clear.start_clear(queue, redis.call('LLEN', queue.base .. 'front')) end
  if state == 'delayed' or state == 'prioritized' or state:find('^group:') then
    return Clear.start_clear(queue, redis.call('ZCARD', queue.base .. state))
  end
  return { offset = 0, ids = {}, last = 1 }
end

-- Gives whether nothing is left, and where the next call goes on.
local function walk_on(queue, walk, state, filter, room)
  if state == 'wait' then return Clear.clear_waiting(queue, walk, filter, room), walk end
  if state == 'active' then return clear_active(queue, walk, filter.before_ms, room), {} end
  if state:find('^group:') then return Clear.clear_groups(queue, walk, state, filter, room), walk end
  if state == 'delayed' or state == 'prioritized' then return Clear.clear_set(queue, walk, state, filter, room), walk end
  if state == 'completed' or state == 'failed' or state == 'waiting-children' then
    return Clear.clear_scored(queue, state, filter, room), walk
  end
  return true, walk
end

-- Tells of full batches, and at the end of the rest. Gives how many are not told of yet.
local function tell_cleaned(queue, untold, is_end, is_full)
  local told = false
  while untold >= BATCH do
    Events.emit(queue, 1, { 'E', 'cleaned', 'count', State.whole(BATCH) })
    untold, told = untold - BATCH, true
  end
  if is_end and not (untold == 0 and is_full and told) then Events.emit(queue, 1, { 'E', 'cleaned', 'count', State.whole(untold) }) end
  return untold
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, state = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local filter, room, cursor, untold = cmsgpack.unpack(args[6]), tonumber(args[7]), args[8], tonumber(args[9])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  -- as in BullMQ
  filter.by_creation = state == 'prioritized'
  Clear.start(queue, untold >= 0)
  local cleared = queue.cleared
  local done, walk = walk_on(queue, cursor == '' and start_walk(queue, state) or cmsgpack.unpack(cursor), state, filter, room)
  WaitingList.call_in_chunks('XDEL', base .. 'log', cleared.entries)
  for i = 1, queue.apart > 0 and #cleared.entries or 0 do Frame.drop_apart(queue, cleared.entries[i]:match('^(%d+)%-%d%d?$')) end
  if #cleared.records > 0 then Records.drop_records(queue, cleared.records) end
  Clear.order_left(queue, state == 'wait')
  Parents.settle_removed(queue, now_ms)
  OtherQueues.flush_visited(queue, now_ms)

  local is_full = cleared.looked >= room
  local is_end = done or is_full
  if untold >= 0 then untold = tell_cleaned(queue, untold + cleared.count, is_end, is_full) end
  Events.flush_events(queue, now_ms)
  local reply = { cleared.wanted and cleared.ids or {}, cleared.count, cleared.looked, is_end and '' or cmsgpack.pack(walk), untold }
  Memo.remember(base, client, slot, number, reply)
  return reply
end
