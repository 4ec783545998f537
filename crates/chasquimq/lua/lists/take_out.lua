-- take_out: takes jobs that a walk has met (lists/walk) out of their state, and drops them. Who holds an active one keeps it, and a scheduler its next job.
local Active = require('active')
local Find = require('find')
local Frame = require('frame')
local GroupOrder = require('group_order')
local Groups = require('groups')
local Locate = require('locate')
local Lock = require('lock')
local Parents = require('parents')
local PendingIteration = require('pending_iteration')
local Records = require('records')
local Retention = require('retention')
local WaitingList = require('waiting_list')

-- An active job that nobody holds.
local function leave_active(queue, job)
  if job.record then
    redis.call('HDEL', queue.base .. 'active', job.id)
    Groups.free_place(queue, job.active[7])
  else
    local chars = job.holder[2] == '' and string.rep('1', job.n) or job.holder[2]
    job.holder[2] = Frame.replace_chars(chars, job.offset, '0')
    Frame.store_holder(queue, job.first, job.n, job.holder)
  end
  queue.active = queue.active - 1
end

local function body_of(queue, job)
  return job.body or redis.call('HGET', queue.base .. 'jobs', job.id)
end

-- Elements of the front list become blanks, so that the others stay in their places, and then go all at once.
local function leave_waiting(queue, jobs)
  local blanks, elsewhere, grouped, bodies = 0, 0, {}, {}
  for _, job in ipairs(jobs) do
    if job.rank then
      redis.call('LSET', queue.base .. 'front', job.rank, '')
      blanks = blanks + 1
    elseif job.is_referred then
      redis.call('HINCRBY', queue.base .. 'gone', job.id, 1)
      queue.stale, elsewhere = queue.stale + 1, elsewhere + 1
    elseif job.first then
      Locate.mark_hole(queue, job, '0')
      elsewhere = elsewhere + 1
    elseif job.is_unsure then
      Locate.leave_waiting(queue, job)
    else
      grouped[#grouped + 1], bodies[#bodies + 1] = job.id, body_of(queue, job) or ''
    end
  end
  if blanks > 0 then redis.call('LREM', queue.base .. 'front', blanks, '') end
  if #grouped > 0 then Groups.take_out(queue, grouped, bodies) end
  queue.waiting = queue.waiting - blanks - elsewhere
end

-- A run of which all jobs go does so as a whole.
local function leave_runs(queue, jobs)
  local met = {}
  for _, job in ipairs(jobs) do
    if job.run then met[job.run_start] = (met[job.run_start] or 0) + 1 end
  end
  for _, job in ipairs(jobs) do
    if job.run and met[job.run_start] == job.run[1] then
      Retention.shorten_run(queue, job.run_start, job.run, job.run[1], 0)
      met[job.run_start] = 0
    elseif job.run and met[job.run_start] > 0 then
      -- where it lies has changed with those before it
      local now = Find.locate(queue, job.id)
      if now and now.run then
        Locate.leave_run(queue, now)
        queue.completed = queue.completed - 1
      end
    end
  end
end

local function leave_set(queue, state, jobs)
  local ids = {}
  for _, job in ipairs(jobs) do
    if job.record then ids[#ids + 1] = job.id end
  end
  WaitingList.call_in_chunks('ZREM', queue.base .. state, ids)
  if state == 'completed' then queue.completed = queue.completed - #ids end
  if state ~= 'delayed' or not Groups.are_used(queue) then return end
  for _, job in ipairs(jobs) do GroupOrder.let_go(queue, body_of(queue, job)) end
end

local function may_go(queue, state, job)
  if state == 'active' and Active.is_alive(queue, Lock.owner_of(job)) then return false end
  return not PendingIteration.is_pending_iteration(queue, job.id)
end

local function leave(queue, state, jobs)
  if state == 'active' then
    for _, job in ipairs(jobs) do leave_active(queue, job) end
    -- what waits may start in their place
    if #jobs > 0 then WaitingList.wake_for_work(queue) end
  elseif state == 'waiting' then
    leave_waiting(queue, jobs)
  else
    if state == 'completed' then leave_runs(queue, jobs) end
    leave_set(queue, state, jobs)
  end
end

-- Gives the ids of those that went. What waits for them waits no more.
local function drop(queue, state, jobs, now_ms)
  local going, ids, records = {}, {}, {}
  for _, job in ipairs(jobs) do
    if may_go(queue, state, job) then
      going[#going + 1], ids[#ids + 1] = job, job.id
      local pa = not job.record and Frame.parent_in(job.header, job.first, job.offset)
      if job.record then records[#records + 1] = job.id end
      if pa then queue.call.left_parents[#queue.call.left_parents + 1] = { queue.base, pa, job.id } end
    end
  end
  leave(queue, state, going)
  if #records > 0 then Records.drop_records(queue, records) end
  Parents.cut_removed(queue)
  Parents.settle_parents(queue, now_ms)
  return ids
end

return {
  leave_active = leave_active,
  leave = leave,
  drop = drop,
}
