-- fail_unstarted: waiting | prioritized | delayed | waiting-children -> failed, for jobs that nobody has taken. They count no try and no start, and no deadline
-- is left. A job is kept as its own removeOnFail says, else by the rule that the caller knows.
local Fail = require('fail')
local Locate = require('locate')
local Outcomes = require('outcomes')
local Parents = require('parents')
local Stored = require('stored')
local Successor = require('successor')
local TakeOut = require('take_out')
local WaitingList = require('waiting_list')

local function count_of(value)
  local count = tonumber(value)
  return count and math.max(math.floor(count), -1) or -1
end

-- The rule (step/finish) by which a job's options keep it once it has failed, as src/job/keep.rs reads them; default: where they do not say.
local function rule_of(job, default)
  local ok, options = pcall(cjson.decode, Stored.body(job.body)[2])
  local keep = nil
  if ok and type(options) == 'table' then keep = options.removeOnFail end
  if keep == nil then return default end
  if keep == true then return { 0, -1, 0, default[4] } end
  if type(keep) ~= 'table' then return { count_of(keep), -1, 0, default[4] } end
  local age = tonumber(keep.age)
  return { count_of(keep.count), age and math.max(age, 0) or -1, tonumber(keep.limit) or 1000, default[4] }
end

-- The state fields of a job. One of a frame gets a record.
local function fields_of(queue, job)
  if job.record then return job.fields or Stored.fields(redis.call('HGET', queue.base .. 'vitals', job.id)) end
  local fields = Locate.frame_fields(queue, job)
  job.body = Locate.body_for_record(queue, job, fields)
  WaitingList.append(queue.finishing.jobs_set, job.id, job.body)
  return fields
end

-- jobs: located, or met by a walk, whatever their states; keep: the rule of those that say nothing themselves.
local function fail(queue, jobs, reason, keep, now_ms)
  local step, by_state = { now_ms = now_ms, keeps = {} }, {}
  Outcomes.start(queue)
  -- no step follows that would look after what starts
  queue.call.by_turn = false
  local finishing = queue.finishing
  for at, job in ipairs(jobs) do
    local fields = fields_of(queue, job)
    fields.fo, fields.fr, fields.d, fields.df, fields.ex = now_ms, reason, nil, nil, nil
    step.keeps[at] = rule_of(job, keep)
    if fields.di then Successor.pass_key_on(queue, job.id, fields, step) end
    if fields.pa then Parents.tell_failure(queue, fields.pa, job.id, reason, step.keeps[at][1] == 0) end
    WaitingList.append(finishing.fields_set, job.id, cmsgpack.pack(fields))
    Fail.settle_failed(queue, job.id, at, reason, job.state, step)
    by_state[job.state] = by_state[job.state] or {}
    WaitingList.append(by_state[job.state], job)
  end
  for state, of_state in pairs(by_state) do TakeOut.leave(queue, state, of_state) end
  Outcomes.write(queue, step)
  Outcomes.apply_rules(queue, step)
  if rawget(finishing, 'added') then WaitingList.wake(queue) end
  Parents.cut_removed(queue)
  Parents.settle_parents(queue, now_ms)
end

return { fail = fail }
