-- fail_unstarted: waiting | prioritized | delayed | waiting-children -> failed, for records that nobody has taken. They leave their places for the active
-- ones, and fail there as any job does (step/fail).
local Delayed = require('delayed')
local Finish = require('finish')
local Frame = require('frame')
local GroupOrder = require('group_order')
local Locate = require('locate')
local Stored = require('stored')

local NOBODY, NO_TRACE = '', ''
local STATES = { waiting = true, prioritized = true, delayed = true, ['waiting-children'] = true }

-- Whether a located job is one of these.
local function may_fail(job)
  return job ~= nil and job.record and STATES[job.state]
end

local function leave(queue, job)
  if job.state == 'waiting' then return Locate.leave_waiting(queue, job) end
  redis.call('ZREM', queue.base .. job.state, job.id)
  if job.state == 'delayed' then GroupOrder.let_go(queue, job.body) end
end

local function count_of(value)
  local count = tonumber(value)
  return count and math.max(math.floor(count), -1) or -1
end

-- The rule (step/finish) by which a job's options keep it once it has failed, as src/job/keep.rs reads them; default: where they do not say.
local function rule_of(options, default)
  local keep = options.removeOnFail
  if keep == nil then return default end
  if keep == true then return { 0, -1, 0, default[4] } end
  if type(keep) ~= 'table' then return { count_of(keep), -1, 0, default[4] } end
  local age = tonumber(keep.age)
  return { count_of(keep.count), age and math.max(age, 0) or -1, tonumber(keep.limit) or 1000, default[4] }
end

local function options_of(job)
  local ok, options = pcall(cjson.decode, Stored.body(job.body)[2])
  return ok and type(options) == 'table' and options or {}
end

-- jobs: located, with their state fields under `fields`; keep: the rule of those that say nothing themselves.
local function fail(queue, jobs, reason, keep, now_ms)
  local outcomes, keeps = {}, {}
  for i, job in ipairs(jobs) do
    local options, made = options_of(job), (job.fields.am or 0) + 1
    leave(queue, job)
    redis.call('HSET', queue.base .. 'active', job.id, cmsgpack.pack({ now_ms, (job.fields.as or 0) + 1, NOBODY, '', Frame.ANY_CLAIM }))
    keeps[i] = rule_of(options, keep)
    outcomes[i] = { 'f', 0, 0, { 0 }, Frame.ANY_CLAIM, { job.id }, {}, 'failed', i, 0, made, made >= (tonumber(options.attempts) or 0) and 1 or 0, reason, NO_TRACE }
  end
  queue.active = queue.active + #jobs
  Finish.finish(queue, outcomes, { owner = NOBODY, claim = Frame.ANY_CLAIM, now_ms = now_ms, keeps = keeps, large = false })
  -- their parents may start
  if queue.flows == 1 then Delayed.wake_for_jobs(queue) end
end

return {
  may_fail = may_fail,
  options_of = options_of,
  rule_of = rule_of,
  fail = fail,
}
