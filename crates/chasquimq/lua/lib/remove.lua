-- remove: takes jobs out of whatever state they are in, with their records, and with their children where that is wanted, which may lie in
-- other queues.

-- The base of the queue that users see by this name (src/keys.rs).
local function base_of(name)
  local prefix = name:match('^(.*):[^:]*$') or ''
  local open = prefix:find('{', 1, true)
  local close = open and prefix:find('}', open, true)
  if close and close > open + 1 then return name .. ':chasqui:' end
  return '{' .. name .. '}:'
end

-- What waits for a located job, as its vitals say; nil when nothing does.
local function parent_of(job)
  if not job.record then return parent_in(job.brood, job.first, job.offset) end
  local raw = redis.call('HGET', base .. 'vitals', job.id)
  return raw and raw:find('\162pa', 1, true) and stored().vitals(raw).pa
end

-- The job of this id, if it is a child of that parent.
local function locate_child(of, id, parent_base, parent)
  local raw = redis.call('HGET', of .. 'vitals', id)
  if raw and not raw:find('\162pa', 1, true) then return nil end
  if not raw and redis.call('EXISTS', of .. 'log') == 0 then return nil end
  return in_queue(of, function()
    local job = locate(id)
    local pa = job and parent_of(job)
    return pa and pa[1] == parent_base and pa[2] == parent and job or nil
  end)
end

-- Where the child of this key is: the base of its queue, its id, which has no colon or two of them, and the job. nil when it is gone, or
-- another's.
local function find_child(key, parent_base, parent)
  for _, pattern in ipairs({ '^(.*):([^:]*)$', '^(.*):([^:]*:[^:]*:[^:]*)$' }) do
    local name, id = key:match(pattern)
    local of = name and base_of(name)
    local job = of and locate_child(of, id, parent_base, parent)
    if job then return of, id, job end
  end
end

-- Does the work in the queue of each of these children, with its id.
local function each_child(keys, parent, work)
  local parent_base = base
  for _, key in ipairs(keys) do
    local of, id = find_child(key, parent_base, parent)
    if of then in_queue(of, function() work(id) end) end
  end
end

local function pending_children(id)
  local keys = redis.call('SMEMBERS', base .. 'children:' .. id)
  for _, span in ipairs(redis.call('SMEMBERS', base .. 'spans:' .. id)) do
    for _, key in ipairs(keys_in_span(span)) do keys[#keys + 1] = key end
  end
  return keys
end

local function all_children(id)
  local keys = pending_children(id)
  for _, span in ipairs(redis.call('HKEYS', base .. 'returned:' .. id)) do
    for _, key in ipairs(keys_in_span(span)) do keys[#keys + 1] = key end
  end
  for _, kind in ipairs({ 'processed:', 'ignored:' }) do
    for _, key in ipairs(redis.call('HKEYS', base .. kind .. id)) do keys[#keys + 1] = key end
  end
  for _, key in ipairs(redis.call('ZRANGE', base .. 'faults:' .. id, 0, -1)) do keys[#keys + 1] = key end
  return keys
end

local function is_held(job)
  return job.state == 'active' and redis.call('EXISTS', base .. 'lease:' .. owner_of(job)) == 1
end

-- Most jobs of a family that one call removes: more of them go in steps (src/removal.rs).
local MOST_KIN = 100

-- How many children a job has or had, at least.
local function least_children(id, ended)
  local function of(command, kind) return redis.call(command, base .. kind .. id) end
  local pending = of('SCARD', 'children:') + of('SCARD', 'spans:')
  if not ended then return pending end
  return pending + of('HLEN', 'returned:') + of('HLEN', 'processed:') + of('HLEN', 'ignored:') + of('ZCARD', 'faults:')
end

-- What a look at a family has found: jobs in it, and whether somebody holds the job or one that it waits for, directly or not.
local K = { seen = {}, count = 0, held = false }

-- Looks at a job and at those below it, until there are more than MOST_KIN. ended: also those that it waits for no more.
local function survey(id, ended, waited_for)
  local job = locate(id)
  -- a job may have been made a child of its own
  if not job or K.seen[base .. id] or K.count > MOST_KIN then return end
  K.seen[base .. id], K.count = true, K.count + 1
  K.held = K.held or (waited_for and is_held(job))
  if not job.record then return end
  local least = least_children(id, ended)
  if K.count + least > MOST_KIN then
    K.count = MOST_KIN + 1
  elseif least > 0 then
    each_child(pending_children(id), id, function(child) survey(child, ended, waited_for) end)
    -- those seen before are passed over
    if ended then each_child(all_children(id), id, function(child) survey(child, ended, false) end) end
  end
end

-- What waits for a job does not any more.
local function leave_parent(job, now_ms)
  local pa = parent_of(job)
  if not pa then return end
  cut_child(base, pa, job.id)
  settle_parents(now_ms)
end

local function take_away(id, known)
  -- its children may have let it go
  local job = known or locate(id)
  if job.state == 'active' then
    detach(job)
    redis.call('HDEL', base .. 'active', id)
    S.active = S.active - 1
  elseif job.state == 'waiting' then
    leave_line(job)
  elseif job.record then
    redis.call('ZREM', base .. job.state, id)
    if job.state == 'completed' then S.completed = S.completed - 1 end
  else
    leave_run(job)
    S.completed = S.completed - 1
  end
  if job.record then drop_records({ id }) end
  emit_job('removed', id, job.state == 'waiting' and 'wait' or job.state)
end

-- Removes a job, and with_children those it has or had, and theirs.
local function remove_family(id, with_children, now_ms)
  local job = locate(id)
  if not job then return end
  leave_parent(job, now_ms)
  if with_children and job.record then
    each_child(all_children(id), id, function(child) remove_family(child, true, now_ms) end)
  end
  take_away(id)
end

-- Removes what a job waits for, directly or not, but for what is held or has ended.
local function remove_pending(id, now_ms)
  each_child(pending_children(id), id, function(child)
    local job = locate(child)
    if is_held(job) or job.state == 'failed' or job.state == 'completed' then return end
    leave_parent(job, now_ms)
    remove_pending(child, now_ms)
    take_away(child)
  end)
end

-- Removes one child of a parent, without its own; settle_parents is left to the caller. Gives whether it has gone: not what somebody holds,
-- nor, unless `ended`, what has failed or completed.
local function remove_child(id, job, ended)
  if is_held(job) or (not ended and (job.state == 'failed' or job.state == 'completed')) then return false end
  local pa = parent_of(job)
  if pa then cut_child(base, pa, id) end
  take_away(id, job)
  return true
end
