-- pending_iteration: whether a job is the latest iteration of a scheduler (rules/schedulers), which nobody but the scheduler may remove.
local function is_pending_iteration(queue, id)
  local scheduler, slot = id:match('^repeat:(.*):(%d+)$')
  if not scheduler then return false end
  return tonumber(redis.call('ZSCORE', queue.base .. 'schedulers', scheduler)) == tonumber(slot)
end

return {
  is_pending_iteration = is_pending_iteration,
}
