-- lock: who holds an active job. Its owner is a worker's id, behind all of whose tokens, <id>:<claim>.<slot> (jobs/frame), one lease stands;
-- or, for a job that was taken manually, <token>#<call>, which has a lease of its own: that holds the id of the worker that took it, who is told of it.
local Frame = require('frame')
local Groups = require('groups')
local Locate = require('locate')
local Stored = require('stored')

local function owner_of(job)
  if job.record then return job.active[3] end
  return job.holder[3]
end

-- Whether a worker's token stands for this taking of the job.
local function is_token_of(job, owner, token)
  local worker, claim = token:match('^(.*):(%d+)%.%d+$')
  return worker == owner and Frame.is_claim(job.record and job.active[5] or (not job.record and job.holder[5]), tonumber(claim))
end

-- 0 when the token may end or move this located job, else why not. The token 0 is anybody's.
local function check_lock(queue, job, token)
  if not job then return -1 end
  if token == '0' then return job.state == 'active' and 0 or -3 end
  if job.state ~= 'active' then return -2 end
  local owner = owner_of(job)
  if redis.call('EXISTS', queue.base .. 'lease:' .. owner) == 0 then return -2 end
  if owner == token or owner:match('^(.*)#') == token or is_token_of(job, owner, token) then return 0 end
  return -6
end

local function is_manual(owner)
  return owner:find('#', 1, true) ~= nil
end

-- What was taken manually leaves its holder: nobody needs its lease any more.
local function free_lock(queue, owner)
  if is_manual(owner) then redis.call('DEL', queue.base .. 'lease:' .. owner) end
end

-- A located job leaves the active ones, unfinished. Gives its state fields, which tell of its start, for the caller to store.
local function leave_active(queue, job)
  local fields
  if job.record then
    fields = Locate.detach(queue, job)
    redis.call('HDEL', queue.base .. 'active', job.id)
    Groups.free_place(queue, job.active[7])
  else
    fields = Locate.leave_frame(queue, job, true)
  end
  queue.active = queue.active - 1
  free_lock(queue, job.active[3])
  Stored.start(fields, job.active)
  return fields
end

return {
  owner_of = owner_of,
  check_lock = check_lock,
  is_manual = is_manual,
  free_lock = free_lock,
  leave_active = leave_active,
}
