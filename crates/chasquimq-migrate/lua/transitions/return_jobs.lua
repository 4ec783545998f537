-- return_jobs: a job of ours, in any state but active -> the same state in BullMQ. Moves the next jobs of a state, each in one step: it is here
-- before the call, and there after it. What adopt_jobs does, the other way round; children go before their parents.
-- KEYS    base (also: state turns grouped groups groups-limited groups-maxed groups-paused group:<group> log front takes frames apart:<first> holes gone jobs vitals traces large active prioritized delayed completed runs failed
--         waiting-children logged logs:<id> parents children:<id> spans:<id> processed:<id> ignored:<id> faults:<id> returned:<id> de:<id>
--         schedulers scheduler scheduler-runs meta events trims memo:<client>:<slot>; of BullMQ: wait paused marker pc repeat and more, migrate/bull)
-- ARGV    now_ms (epoch ms), client, slot, number, source (migrate/bull), state, skip (jobs, of the completed runs and records, that the caller
--         knows to stay), most (jobs), sources (MessagePack array: of all queues that go back)
-- RETURNS {jobs looked at (0 = no more), jobs moved, schedulers moved, {id, why it stays, ...}, jobs or runs that stay}
--         why: missing, unreadable, exists, children, unsettled, scheduler
-- ERRORS  none      EVENTS none      COST O(most * log n), or 1 MiB
-- SOURCE  none: moving to BullMQ
local AclCheck = require('acl_check')
local Bull = require('bull')
local ByRank = require('by_rank')
local Events = require('events')
local Fetch = require('fetch')
local Fetched = require('fetched')
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local Locate = require('locate')
local Memo = require('memo')
local Parents = require('parents')
local Records = require('records')
local Restore = require('restore')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local MAX_BYTES, MOST_UNGROUPED = 1048576, 100
local STATES = { 'waiting', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed' }

-- Ends the call, which has written nothing yet, where it could not be carried out as a whole.
local function require_all(queue, source)
  AclCheck.require_commands(queue, { 'SET', 'XDEL', 'HSET', 'SADD', 'LPOP', 'HDEL', 'ZREM', 'SREM' })
  AclCheck.require_commands({ base = source }, { 'SET', 'HSET', 'ZADD', 'SADD', 'LPUSH' })
  AclCheck.require_each({ 'UNLINK', 'DEL', 'INCR' }, source .. 'log')
  AclCheck.require_each({ 'RENAME' }, queue.base .. 'log', source .. 'log')
  State.check_types(queue)
  Bull.require_types(source)
  Bull.require_counter(source)
end

-- Notes a job that goes, and says whether it does. page: what the call looks at: state, skip, most, now_ms; looked, stays and kept, as it
-- RETURNS them; seen, by id.
local function look_at(queue, page, id, score)
  page.looked = page.looked + 1
  -- a list may name a job twice
  local why = page.seen[id] and 'missing' or Restore.consider(queue, id, score)
  page.seen[id] = true
  if not why then return true end
  WaitingList.append(page.stays, id, why)
  return false
end

-- Ids of those that head the waiting list.
local function heads(queue, page)
  ByRank.start(queue, true)
  queue.listing.most = page.most
  local walk = ByRank.start_walk(queue, 'waiting', page.skip, page.skip + page.most - 1, true)
  if not walk then return {} end
  ByRank.go_on(queue, walk)
  local ids = queue.listing.ids
  if walk.turn then Parents.reverse(ids) end
  return ids
end

-- Takes jobs that lie together, all of them or, where one stays, none. taking: going (whose ids go), taken, by id; number, of those that
-- were taken; records, ids of those that have one.
local function take_all(taking, ids)
  for _, id in ipairs(ids) do
    if not taking.going[id] then return false end
  end
  for _, id in ipairs(ids) do taking.taken[id] = true end
  taking.number = taking.number + #ids
  return true
end

-- what: how many jobs of the frame, or that and what their ids begin with.
local function take_frame(queue, taking, first, what)
  local n, ids, of_frame = type(what) == 'table' and what[1] or what, type(what) == 'table' and what[2] or nil, {}
  for at = first, first + n - 1 do of_frame[#of_frame + 1] = Frame.id_in(ids, at) end
  if not take_all(taking, of_frame) then return end
  redis.call('HDEL', queue.base .. 'takes', State.whole(first))
  Frame.drop_frame(queue, first, n)
end

-- Takes what heads the waiting list as a worker does, which costs the same however long the waiting list is. What another program wrote may bring others
-- than those that are going: they stay with a worker that is gone, and are brought back.
local function take_heads(queue, going, count, now_ms)
  Fetched.start(queue)
  Fetch.fetch(queue, count, 0, { now_ms = now_ms, owner = 'moving', worker_name = '', claim = 0, max_bytes = 0 })
  local fetched, taking = queue.fetched.ids, { going = going, taken = {}, number = 0, records = {} }
  local records = taking.records
  for i = 1, #fetched, 2 do
    local first, what = fetched[i], fetched[i + 1]
    if first > 0 then take_frame(queue, taking, first, what) end
    for _, id in ipairs(first == 0 and what or {}) do
      if take_all(taking, { id }) then records[#records + 1] = id end
    end
  end
  for from = 1, #records, 1000 do
    redis.call('HDEL', queue.base .. 'active', unpack(records, from, math.min(from + 999, #records)))
  end
  queue.active = queue.active - taking.number
  -- nobody is to hear that they were active
  queue.event_groups, queue.event_count, queue.open_group = {}, 0, nil
  return taking
end

-- Jobs of which none stands before another: those that are taken go.
local function return_heads(queue, page)
  local jobs, wanted, going = queue.restoring.jobs, {}, {}
  for _, job in ipairs(jobs) do wanted[job.id] = true end
  local taking = take_heads(queue, wanted, #jobs, page.now_ms)
  for _, job in ipairs(jobs) do
    if taking.taken[job.id] then going[#going + 1] = job end
  end
  queue.restoring.jobs, page.looked = going, #going
  Restore.write(queue, going)
  Records.drop_records(queue, taking.records, true, true)
end

local function drop(queue, jobs)
  local records = {}
  for _, job in ipairs(jobs) do
    if job.record then records[#records + 1] = job.id end
  end
  if #records > 0 then Records.drop_records(queue, records, true, true) end
end

local function return_line(queue, page)
  local restoring = queue.restoring
  for _, id in ipairs(heads(queue, page)) do
    if restoring.bytes > MAX_BYTES then break end
    look_at(queue, page, id)
  end
  page.kept = #page.stays / 2
  local jobs = restoring.jobs
  if #jobs == 0 then return end
  if page.skip == 0 and page.kept == 0 then return return_heads(queue, page) end
  for _, job in ipairs(jobs) do Locate.leave_waiting(queue, Find.locate(queue, job.id)) end
  Restore.write(queue, jobs)
  drop(queue, jobs)
end

-- Jobs of a member of a set: itself, or those of a run.
local function ids_of(queue, state, member)
  local raw = state == 'completed' and redis.call('HGET', queue.base .. 'runs', member)
  local run = raw and Stored.run(raw)
  if not run then return { member } end
  local ids = {}
  for at = 0, run[1] - 1 do ids[#ids + 1] = Frame.id_in(run[7], tonumber(member) + at) end
  return ids
end

-- Notes the jobs of a member of a set, and says whether it goes: a run does as a whole.
local function look_at_member(queue, page, member, score)
  local jobs, all_go = queue.restoring.jobs, true
  local before = #jobs
  for _, id in ipairs(ids_of(queue, page.state, member)) do all_go = look_at(queue, page, id, score) and all_go end
  if all_go then return true end
  page.kept = page.kept + 1
  for at = #jobs, before + 1, -1 do
    WaitingList.append(page.stays, jobs[at].id, 'exists')
    jobs[at] = nil
  end
  return false
end

local function return_set(queue, page)
  local state, restoring, going = page.state, queue.restoring, {}
  local found = redis.call('ZRANGE', queue.base .. state, page.skip, page.skip + page.most - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    if restoring.bytes > MAX_BYTES or page.looked >= page.most then break end
    if look_at_member(queue, page, found[i], found[i + 1]) then WaitingList.append(going, found[i], found[i + 1]) end
  end
  if #going == 0 then return end
  Restore.write(queue, restoring.jobs)
  if state == 'completed' or state == 'failed' then return Retention.drop_finished(queue, state, going, math.huge) end
  for i = 1, #going, 2 do redis.call('ZREM', queue.base .. state, going[i]) end
  drop(queue, restoring.jobs)
end

-- BullMQ knows no groups: their jobs wait behind the others, some with each call.
local function ungroup(queue)
  if Groups.count(queue) == 0 then return end
  local ids = redis.call('ZRANGE', queue.base .. 'grouped', 0, MOST_UNGROUPED - 1)
  Groups.take_out(queue, ids, redis.call('HMGET', queue.base .. 'jobs', unpack(ids)))
  WaitingList.append_references(queue, ids)
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, source = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local state, skip, most, sources = args[6], tonumber(args[7]), tonumber(args[8]), Bull.read_texts(args[9])

  Bull.require_word(STATES, state)
  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  require_all(queue, source)
  Restore.start(queue, source, sources)
  local page = { state = state, skip = skip, most = most, now_ms = now_ms, looked = 0, stays = {}, kept = 0, seen = {} }
  if state == 'waiting' then ungroup(queue) end
  if state == 'waiting' then return_line(queue, page) else return_set(queue, page) end
  local jobs, schedulers = queue.restoring.jobs, 0
  for _, job in ipairs(jobs) do schedulers = schedulers + (job.scheduler and 1 or 0) end
  local reply = { page.looked, #jobs, schedulers, page.stays, page.kept }
  if #jobs == 0 then return reply end
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, reply)
  return reply
end
