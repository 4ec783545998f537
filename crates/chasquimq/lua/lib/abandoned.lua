-- abandoned: active jobs whose worker has no lease any more, in the order in which they were started.
local Frame = require('frame')
local Held = require('held')
local State = require('state')
local Stored = require('stored')

local function abandoned_jobs(queue)
  local alive, jobs = {}, {}
  local function is_abandoned(owner)
    if alive[owner] == nil then alive[owner] = redis.call('EXISTS', queue.base .. 'lease:' .. owner) == 1 end
    return not alive[owner]
  end
  local takes = redis.call('HGETALL', queue.base .. 'takes')
  for i = 1, #takes, 2 do
    local first, take = Held.held_take(takes[i], takes[i + 1])
    if is_abandoned(take[3]) then
      local n, brood = Held.held_frame(queue, first, take), Frame.brood_in(take)
      for offset = 0, n - 1 do
        if take[2] == '' or take[2]:sub(offset + 1, offset + 1) == '1' then
          jobs[#jobs + 1] = { id = Frame.id_in(brood and brood[1], first + offset), started = take[1], order = first + offset, first = first,
            n = n, pa = Frame.parent_in(brood, first, offset) }
        end
      end
    end
  end
  local records = redis.call('HGETALL', queue.base .. 'active')
  for i = 1, #records, 2 do
    local active = Stored.active(records[i + 1])
    if is_abandoned(active[3]) then
      jobs[#jobs + 1] = { id = records[i], started = active[1], order = State.number_of(records[i]) }
    end
  end
  table.sort(jobs, function(a, b)
    if a.started ~= b.started then return a.started < b.started end
    if a.order ~= b.order then return a.order < b.order end
    return a.id < b.id
  end)
  return jobs
end

return {
  abandoned_jobs = abandoned_jobs,
}
