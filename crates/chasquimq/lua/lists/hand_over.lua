-- hand_over: gives jobs that a walk has met (lists/walk) to another queue, where they are new: name, data, options, time of their creation, priority and group
-- come along; what happened to them so far stays behind. Delayed jobs keep the time at which they are due, what ended waits.
-- Not given are jobs that belong to others: children and parents, jobs of a scheduler, and those with an id of the user's that a job there has already.
local Delayed = require('delayed')
local Events = require('events')
local Expiry = require('expiry')
local Find = require('find')
local Frame = require('frame')
local Groups = require('groups')
local Large = require('large')
local Locate = require('locate')
local OtherQueues = require('other_queues')
local PendingIteration = require('pending_iteration')
local Prioritized = require('prioritized')
local State = require('state')
local Stored = require('stored')
local TakeOut = require('take_out')
local WaitingList = require('waiting_list')

-- Longer data lie apart (jobs/large).
local LARGE = 16384

local function belongs_to_others(queue, job, fields)
  return fields.pa ~= nil or redis.call('SISMEMBER', queue.base .. 'parents', job.id) == 1 or PendingIteration.is_iteration(queue, job.id)
end

-- What its body holds, with its data; nil when that cannot be read.
local function read_values(queue, job, fields)
  local values
  if job.record then
    values = Stored.read_body(job.body or redis.call('HGET', queue.base .. 'jobs', job.id))
    if values and fields.ld then values[4] = redis.call('HGET', queue.base .. 'large', 'd' .. job.id) end
  else
    values = Stored.read_body(Locate.frame_body(queue, job))
  end
  return values and type(values[3]) == 'string' and type(values[4]) == 'string' and values or nil
end

-- The id that it has there: an id of the user's stays. nil: there is such a job.
local function id_there(target, id)
  if id:match('^%d+$') then
    target.id = target.id + 1
    return State.whole(target.id)
  end
  return not Find.locate(target, id) and id or nil
end

local function store(target, id, values, known)
  local fields = { pr = known.pr, kl = known.kl }
  Expiry.note_again(target, id, fields, known)
  if #values[4] > LARGE then
    fields.ld = Large.put_data(target, id, values[4])
    values[4] = ''
  end
  if values[6] then Groups.expect(target) elseif known.pr or values[5] then Prioritized.expect_priorities(target) end
  redis.call('HSET', target.base .. 'jobs', id, cmsgpack.pack(values))
  if next(fields) then redis.call('HSET', target.base .. 'vitals', id, cmsgpack.pack(fields)) end
end

-- new: ids, names, dues (of delayed ones).
local function enter(target, new)
  if #new.ids == 0 then return end
  if new.dues then
    Events.emit(target, 2 * #new.ids, { 'B', new.ids, #new.ids, new.names, 'delayed', new.dues })
    if Delayed.delay_jobs(target, new.ids, new.dues) then WaitingList.wake(target) end
  else
    Events.emit(target, 2 * #new.ids, { 'B', new.ids, #new.ids, new.names, 'waiting' })
    Prioritized.enter(target, new.ids)
    WaitingList.wake(target)
  end
end

-- Gives the ids, as they were here, of those that went.
local function give(queue, state, jobs, base, now_ms)
  local going, new = {}, { ids = {}, names = {}, dues = state == 'delayed' and {} or nil }
  OtherQueues.in_queue(queue, base, function(target)
    for _, job in ipairs(jobs) do
      local fields = job.record and Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id))
        or { pa = Frame.parent_in(job.header, job.first, job.offset) }
      local values = not belongs_to_others(queue, job, fields) and read_values(queue, job, fields)
      local id = values and id_there(target, job.id)
      if id then
        store(target, id, values, fields)
        local n = #going + 1
        going[n], new.ids[n], new.names[n] = job, id, values[3]
        if new.dues then new.dues[n] = math.floor(tonumber(redis.call('ZSCORE', queue.base .. 'delayed', job.id)) / 4096) end
      end
    end
    enter(target, new)
  end)
  local ids = TakeOut.drop(queue, state, going, now_ms)
  for _, id in ipairs(ids) do Events.emit_job(queue, 'removed', id, state == 'waiting' and 'wait' or state) end
  return ids
end

return {
  give = give,
}
