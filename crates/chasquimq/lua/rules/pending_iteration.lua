-- pending_iteration: whether a job is an iteration of a scheduler (rules/schedulers) that is still there; the latest one nobody but the scheduler may remove.
local State = require('state')

-- The scheduler's id, and the slot.
local function parts_of(id)
  return id:match('^repeat:(.*):(%d+)$')
end

local function is_iteration(queue, id)
  local scheduler = parts_of(id)
  return scheduler ~= nil and redis.call('HEXISTS', queue.base .. 'scheduler', scheduler) == 1
end

local function is_pending_iteration(queue, id)
  local scheduler, slot = parts_of(id)
  if not scheduler then return false end
  local latest = redis.call('ZSCORE', queue.base .. 'schedulers', scheduler)
  return latest ~= false and State.whole(tonumber(latest)) == slot
end

local function scheduler_of(id) return (parts_of(id)) end

return {
  scheduler_of = scheduler_of,
  is_iteration = is_iteration,
  is_pending_iteration = is_pending_iteration,
}
