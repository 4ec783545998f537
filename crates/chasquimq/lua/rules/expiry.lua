-- expiry: jobs that fail for good unless they have started by some time, by the server's clock. Whoever would start such a job sees that it is too late, and
-- takes it only to fail (step/fetched); what nobody takes is found by transitions/fail_expired.
--   expiring  sorted set: jobs that have not started, by that time (epoch ms). A job may stay there that was removed, or has been replaced
-- Its state fields hold ex, the time. An add names it: below 0 = so many ms from now. Of a scheduler's job it counts from when that is due, and only who takes
-- the job fails it, as that makes the next one. A job has started once a worker has taken it, unless that gives it back; what that worker's death leaves
-- unknown (su: transitions/recover_stalled) may have run.
local Groups = require('groups')
local State = require('state')

local REASON = 'job expired before it started'

-- One time for all that a call looks at.
local function server_ms(queue)
  queue.server_ms = queue.server_ms or Groups.server_ms()
  return queue.server_ms
end

-- A job is added: notes in its state fields when it expires, if it does.
local function note(queue, id, fields, expires)
  if not expires then return end
  fields.ex = expires < 0 and server_ms(queue) - expires or expires
  redis.call('ZADD', queue.base .. 'expiring', State.whole(fields.ex), id)
end

-- The same of a job that never started, by what is known of it: it waits again, or elsewhere.
local function note_again(queue, id, fields, known)
  if (known.as or 0) == 0 then note(queue, id, fields, known.ex) end
end

-- Whether a job was to start by now, and never did, by its state fields. What else another program wrote there says nothing.
local function is_due(queue, fields)
  local ex = tonumber(fields.ex)
  return ex ~= nil and ex <= server_ms(queue) and (tonumber(fields.as) or 0) == 0 and fields.su == nil
end

-- How long it is until the next one's time comes, ms; nil: no job has one.
local function left_ms(queue)
  local first = redis.call('ZRANGE', queue.base .. 'expiring', 0, 0, 'WITHSCORES')
  return first[1] and math.ceil(tonumber(first[2]) - server_ms(queue)) or nil
end

-- So many jobs whose time has come.
local function due_jobs(queue, most)
  return redis.call('ZRANGEBYSCORE', queue.base .. 'expiring', '-inf', State.whole(server_ms(queue)), 'LIMIT', 0, most)
end

return {
  REASON = REASON,
  server_ms = server_ms,
  note = note,
  note_again = note_again,
  is_due = is_due,
  left_ms = left_ms,
  due_jobs = due_jobs,
}
