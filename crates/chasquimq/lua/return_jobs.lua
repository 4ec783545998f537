-- return_jobs: a job of ours, in any state but active -> the same state in BullMQ. Moves the next jobs of a state, each in one step: it is here
-- before the call, and there after it. What adopt_jobs does, the other way round; children go before their parents.
-- KEYS    base (also: state log front takes frames apart:<first> holes gone jobs vitals traces large active prioritized delayed completed runs failed
--         waiting-children logged logs:<id> parents children:<id> spans:<id> processed:<id> ignored:<id> faults:<id> returned:<id> de:<id>
--         schedulers scheduler meta events trims memo:<client>:<slot>; of BullMQ: wait paused marker pc repeat and more, lib/bull)
-- ARGV    now_ms (epoch ms), client, slot, number, source (lib/bull), state, skip (jobs, of the completed runs and records, that the caller
--         knows to stay), most (jobs), sources (MessagePack array: of all queues that go back)
-- RETURNS {jobs looked at (0 = no more), jobs moved, schedulers moved, {id, why it stays, ...}, jobs or runs that stay}
--         why: missing, unreadable, exists, children, unsettled, scheduler
-- ERRORS  none      EVENTS none      COST O(most * log n), or 1 MiB
-- SOURCE  none: moving to BullMQ
local Allowed = require('allowed')
local Bull = require('bull')
local Events = require('events')
local Fetch = require('fetch')
local Find = require('find')
local Frame = require('frame')
local Keep = require('keep')
local Locate = require('locate')
local Memo = require('memo')
local Parents = require('parents')
local Ranks = require('ranks')
local Records = require('records')
local Restore = require('restore')
local State = require('state')
local Stored = require('stored')
local Taken = require('taken')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, source = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local state, skip, most, sources = args[6], tonumber(args[7]), tonumber(args[8]), Bull.read_texts(args[9])
  local MAX_BYTES = 1048576
  local STATES = { 'waiting', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed' }

  Bull.require_word(STATES, state)
  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  Allowed.require_commands(queue, { 'SET', 'XDEL', 'HSET', 'SADD', 'LPOP', 'HDEL', 'ZREM', 'SREM' })
  Allowed.require_commands({ base = source }, { 'SET', 'HSET', 'ZADD', 'SADD', 'LPUSH' })
  Allowed.require_each({ 'UNLINK', 'DEL', 'INCR' }, source .. 'log')
  Allowed.require_each({ 'RENAME' }, base .. 'log', source .. 'log')
  State.check_kinds(queue)
  Bull.require_kinds(source)
  Bull.require_counter(source)
  Restore.start(queue, source, sources)
  local restoring = queue.restoring
  local stays, looked, kept, seen = {}, 0, 0, {}

  local function look_at(id, score)
    looked = looked + 1
    -- a line may name a job twice
    local why = seen[id] and 'missing' or Restore.consider(queue, id, score)
    seen[id] = true
    if not why then return true end
    stays[#stays + 1] = id
    stays[#stays + 1] = why
    return false
  end

  -- Ids of those that head the line.
  local function heads()
    Ranks.start(queue, true)
    queue.listing.most = most
    local walk = Ranks.start_walk(queue, 'waiting', skip, skip + most - 1, true)
    if not walk then return {} end
    Ranks.go_on(queue, walk)
    local ids = queue.listing.ids
    if walk.turn then Parents.reverse(ids) end
    return ids
  end

  -- Takes what heads the line as a worker does, which costs the same however long the line is. Gives those that are going, by id, and those
  -- with a record. What another program wrote may bring others: they stay with a worker that is gone, and are brought back.
  local function take_heads(count, going)
    Taken.start(queue)
    Fetch.fetch(queue, count, 0, { now_ms = now_ms, owner = 'moving', worker_name = '', claim = 0, max_bytes = 0 })
    local fetched, taken, records, number = queue.fetched, {}, {}, 0

    local function take_all(ids)
      for _, id in ipairs(ids) do
        if not going[id] then return false end
      end
      for _, id in ipairs(ids) do taken[id] = true end
      number = number + #ids
      return true
    end

    for i = 1, #fetched.ids, 2 do
      local first, what = fetched.ids[i], fetched.ids[i + 1]
      if first == 0 then
        for _, id in ipairs(what) do
          if take_all({ id }) then records[#records + 1] = id end
        end
      else
        local n, ids, of_frame = type(what) == 'table' and what[1] or what, type(what) == 'table' and what[2] or nil, {}
        for at = first, first + n - 1 do of_frame[#of_frame + 1] = Frame.id_in(ids, at) end
        if take_all(of_frame) then
          redis.call('HDEL', base .. 'takes', State.whole(first))
          Frame.drop_frame(queue, first, n)
        end
      end
    end
    for from = 1, #records, 1000 do redis.call('HDEL', base .. 'active', unpack(records, from, math.min(from + 999, #records))) end
    queue.active = queue.active - number
    -- nobody is to hear that they were active
    queue.event_groups, queue.event_count, queue.open_group = {}, 0, nil
    return taken, records
  end

  local function drop(jobs)
    local records = {}
    for _, job in ipairs(jobs) do
      if job.record then records[#records + 1] = job.id end
    end
    if #records > 0 then Records.drop_records(queue, records, true, true) end
  end

  local function return_line()
    for _, id in ipairs(heads()) do
      if restoring.bytes > MAX_BYTES then break end
      look_at(id)
    end
    kept = #stays / 2
    local jobs = restoring.jobs
    if #jobs == 0 then return end
    if skip == 0 and kept == 0 then
      local wanted, going = {}, {}
      for _, job in ipairs(jobs) do wanted[job.id] = true end
      local taken, records = take_heads(#jobs, wanted)
      for _, job in ipairs(jobs) do
        if taken[job.id] then going[#going + 1] = job end
      end
      restoring.jobs, looked = going, #going
      Restore.write(queue, going)
      Records.drop_records(queue, records, true, true)
      return
    end
    for _, job in ipairs(jobs) do Locate.leave_line(queue, Find.locate(queue, job.id)) end
    Restore.write(queue, jobs)
    drop(jobs)
  end

  -- Jobs of a member of a set: itself, or those of a run.
  local function ids_of(member)
    local raw = state == 'completed' and redis.call('HGET', base .. 'runs', member)
    local run = raw and Stored.run(raw)
    if not run then return { member } end
    local ids = {}
    for at = 0, run[1] - 1 do ids[#ids + 1] = Frame.id_in(run[7], tonumber(member) + at) end
    return ids
  end

  local function return_set()
    local found, going = redis.call('ZRANGE', base .. state, skip, skip + most - 1, 'WITHSCORES'), {}
    for i = 1, #found, 2 do
      if restoring.bytes > MAX_BYTES or looked >= most then break end
      local before, all_go = #restoring.jobs, true
      for _, id in ipairs(ids_of(found[i])) do all_go = look_at(id, found[i + 1]) and all_go end
      if all_go then
        going[#going + 1], going[#going + 2] = found[i], found[i + 1]
      else
        kept = kept + 1
        -- a run goes as a whole
        for at = #restoring.jobs, before + 1, -1 do
          stays[#stays + 1] = restoring.jobs[at].id
          stays[#stays + 1] = 'exists'
          restoring.jobs[at] = nil
        end
      end
    end
    if #going == 0 then return end
    Restore.write(queue, restoring.jobs)
    if state == 'completed' or state == 'failed' then
      Keep.drop_finished(queue, state, going, math.huge)
    else
      for i = 1, #going, 2 do redis.call('ZREM', base .. state, going[i]) end
      drop(restoring.jobs)
    end
  end

  if state == 'waiting' then return_line() else return_set() end
  local schedulers = 0
  for _, job in ipairs(restoring.jobs) do schedulers = schedulers + (job.scheduler and 1 or 0) end
  local reply = { looked, #restoring.jobs, schedulers, stays, kept }
  if #restoring.jobs == 0 then return reply end
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, reply)
  return reply
end
