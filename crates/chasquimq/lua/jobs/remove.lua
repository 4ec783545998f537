-- remove: takes jobs out of whatever state they are in, with their records, and with their children where that is wanted, which may lie in
-- other queues.
local Events = require('events')
local Find = require('find')
local Frame = require('frame')
local GroupOrder = require('group_order')
local Groups = require('groups')
local Locate = require('locate')
local Lock = require('lock')
local Names = require('names')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Records = require('records')
local SiblingRanges = require('sibling_ranges')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- What waits for a located job, as its state fields say; nil when nothing does.
local function parent_of(queue, job)
  if not job.record then return Frame.parent_in(job.header, job.first, job.offset) end
  local raw = redis.call('HGET', queue.base .. 'vitals', job.id)
  return raw and raw:find('\162pa', 1, true) and Stored.fields(raw).pa
end

-- The job of this id, if it is a child of that parent.
local function locate_child(queue, of, id, parent_base, parent)
  local raw = redis.pcall('HGET', of .. 'vitals', id)
  -- in another slot of a cluster: no queue of this family
  if type(raw) == 'table' then
    if raw.err:find('slot', 1, true) or raw.err:find('non local', 1, true) then return nil end
    error(raw.err)
  end
  if raw and not raw:find('\162pa', 1, true) then return nil end
  if not raw and redis.call('EXISTS', of .. 'log') == 0 then return nil end
  return OtherQueues.in_queue(queue, of, function(queue)
    local job = Find.locate(queue, id)
    local pa = job and parent_of(queue, job)
    return pa and pa[1] == parent_base and pa[2] == parent and job or nil
  end)
end

-- Where the child of this key is: the base of its queue, its id, which has no colon or two of them, and the job. nil when it is gone, or
-- another's.
local function find_child(queue, key, parent_base, parent)
  for _, pattern in ipairs({ '^(.*):([^:]*)$', '^(.*):([^:]*:[^:]*:[^:]*)$' }) do
    local name, id = key:match(pattern)
    local of = name and Names.base_of(name)
    local job = of and locate_child(queue, of, id, parent_base, parent)
    if job then return of, id, job end
  end
end

-- Calls work(queue, id) for each of these children, with the queue that it lies in.
local function each_child(queue, keys, parent, work)
  local parent_base = queue.base
  for _, key in ipairs(keys) do
    local of, id = find_child(queue, key, parent_base, parent)
    if of then OtherQueues.in_queue(queue, of, function(queue) work(queue, id) end) end
  end
end

local function pending_children(queue, id)
  local keys = redis.call('SMEMBERS', queue.base .. 'children:' .. id)
  for _, range in ipairs(redis.call('SMEMBERS', queue.base .. 'spans:' .. id)) do
    for _, key in ipairs(SiblingRanges.keys_in_range(range)) do keys[#keys + 1] = key end
  end
  return keys
end

local function all_children(queue, id)
  local keys = pending_children(queue, id)
  for _, range in ipairs(redis.call('HKEYS', queue.base .. 'returned:' .. id)) do
    for _, key in ipairs(SiblingRanges.keys_in_range(range)) do keys[#keys + 1] = key end
  end
  for _, kind in ipairs({ 'processed:', 'ignored:' }) do
    for _, key in ipairs(redis.call('HKEYS', queue.base .. kind .. id)) do keys[#keys + 1] = key end
  end
  for _, key in ipairs(redis.call('ZRANGE', queue.base .. 'faults:' .. id, 0, -1)) do keys[#keys + 1] = key end
  return keys
end

local function is_held(queue, job)
  return job.state == 'active' and redis.call('EXISTS', queue.base .. 'lease:' .. Lock.owner_of(job)) == 1
end

-- Most jobs of a family that one call removes: more of them go in steps (src/queue/removal.rs).
local MOST_FAMILY = 100

local function children_in(ranges)
  local count = 0
  for _, range in ipairs(ranges) do count = count + select(2, SiblingRanges.read_range(range)) end
  return count
end

-- How many children a job has or had, at least; exactly when they are few.
local function least_children(queue, id, ended)
  local function of(command, kind) return redis.call(command, queue.base .. kind .. id) end
  local by_key, ranges = of('SCARD', 'children:'), of('SCARD', 'spans:')
  if ended then
    by_key = by_key + of('HLEN', 'processed:') + of('HLEN', 'ignored:') + of('ZCARD', 'faults:')
    ranges = ranges + of('HLEN', 'returned:')
  end
  if ranges == 0 or by_key + ranges > MOST_FAMILY then return by_key + ranges end
  return by_key + children_in(of('SMEMBERS', 'spans:')) + (ended and children_in(of('HKEYS', 'returned:')) or 0)
end

-- Of a call: kin, what a look at a family has found: jobs in it, and whether somebody holds the job or one that it waits for, directly or not.
local function start(queue)
  queue.call.family = { seen = {}, count = 0, held = false }
end

-- Looks at a job and at those below it, until there are more than MOST_FAMILY. ended: also those that it waits for no more.
local function survey(queue, id, ended, waited_for)
  local kin = queue.call.family
  -- a job may have been made a child of its own
  if kin.count > MOST_FAMILY or kin.seen[queue.base .. id] then return end
  local job = Find.locate(queue, id)
  if not job then return end
  kin.seen[queue.base .. id], kin.count = true, kin.count + 1
  kin.held = kin.held or (waited_for and is_held(queue, job))
  if not job.record then return end
  local least = least_children(queue, id, ended)
  if kin.count + least > MOST_FAMILY then
    kin.count = MOST_FAMILY + 1
  elseif least > 0 then
    each_child(queue, pending_children(queue, id), id, function(queue, child) survey(queue, child, ended, waited_for) end)
    -- those seen before are passed over
    if ended then each_child(queue, all_children(queue, id), id, function(queue, child) survey(queue, child, ended, false) end) end
  end
end

-- What waits for a job does not any more.
local function leave_parent(queue, job, now_ms)
  local pa = parent_of(queue, job)
  if not pa then return end
  Parents.remove_dependency(queue, queue.base, pa, job.id)
  Parents.settle_parents(queue, now_ms)
end

local function take_away(queue, id, known)
  -- its children may have let it go
  local job = known or Find.locate(queue, id)
  if job.state == 'active' then
    Locate.detach(queue, job)
    redis.call('HDEL', queue.base .. 'active', id)
    Groups.free_place(queue, job.active[7])
    queue.active = queue.active - 1
    -- what waits may start in its place
    WaitingList.wake_for_work(queue)
  elseif job.state == 'waiting' then
    Locate.leave_waiting(queue, job)
  elseif job.record then
    redis.call('ZREM', queue.base .. job.state, id)
    if job.state == 'delayed' then GroupOrder.let_go(queue, job.body) end
    if job.state == 'completed' then queue.completed = queue.completed - 1 end
  else
    Locate.leave_run(queue, job)
    queue.completed = queue.completed - 1
  end
  if job.record then Records.drop_records(queue, { id }) end
  Events.emit_job(queue, 'removed', id, job.state == 'waiting' and 'wait' or job.state)
end

-- Removes a job, and with_children those it has or had, and theirs.
local function remove_family(queue, id, with_children, now_ms)
  local job = Find.locate(queue, id)
  if not job then return end
  leave_parent(queue, job, now_ms)
  if with_children and job.record then
    each_child(queue, all_children(queue, id), id, function(queue, child) remove_family(queue, child, true, now_ms) end)
  end
  take_away(queue, id)
end

-- Removes what a job waits for, directly or not, but for what is held or has ended.
local function remove_pending(queue, id, now_ms)
  each_child(queue, pending_children(queue, id), id, function(queue, child)
    local job = Find.locate(queue, child)
    if is_held(queue, job) or job.state == 'failed' or job.state == 'completed' then return end
    leave_parent(queue, job, now_ms)
    remove_pending(queue, child, now_ms)
    take_away(queue, child)
  end)
end

-- Removes one child of a parent, without its own; settle_parents is left to the caller. Gives whether it has gone: not what somebody holds,
-- nor, unless `ended`, what has failed or completed.
local function remove_child(queue, id, job, ended)
  if is_held(queue, job) or (not ended and (job.state == 'failed' or job.state == 'completed')) then return false end
  local pa = parent_of(queue, job)
  if pa then Parents.remove_dependency(queue, queue.base, pa, id) end
  take_away(queue, id, job)
  return true
end

return {
  start = start,
  find_child = find_child,
  is_held = is_held,
  MOST_FAMILY = MOST_FAMILY,
  survey = survey,
  remove_family = remove_family,
  remove_pending = remove_pending,
  remove_child = remove_child,
}
