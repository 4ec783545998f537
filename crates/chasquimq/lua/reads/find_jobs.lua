-- find_jobs: no change. Gives, or counts, jobs of a state that a filter picks; a bounded step a call.
-- KEYS    base (also: state jobs vitals traces large log front runs holes gone takes active completed failed delayed prioritized waiting-children grouped
--         group:<group> apart:<first>)
-- ARGV    state (waiting | active | delayed | prioritized | completed | failed | waiting-children), filter (MessagePack, rules/filter), place (JSON, lists/walk;
--         '' at first), take (jobs to pick), counts_only (1|0)
-- RETURNS {place ('' = done), jobs looked at, jobs picked, jobs}; jobs as those of read_jobs, or none
-- ERRORS  none      EVENTS none      COST O(500 records, or 2000 jobs of frames, or 1 MiB of them)
-- SOURCE  none: an extension
-- FLAGS   no-writes
local Describe = require('describe')
local Filter = require('filter')
local Frame = require('frame')
local ReadBudget = require('read_budget')
local State = require('state')
local Walk = require('walk')

-- What ended comes the latest first.
local BACK = { completed = true, failed = true }

-- The bodies of a frame's jobs, by their places; of the frame that was read last they are there.
local function bodies_of(queue, job)
  local known = queue.given_frame
  if not known or known.first ~= job.first then
    known = { first = job.first }
    local body_of = Frame.given_bodies(queue, job.first, job.blob, job.n)
    for i = 0, job.n - 1 do known[i] = body_of(i) end
    queue.given_frame = known
  end
  return known
end

local function give(queue, job, out)
  if job.record then
    job.body = job.body or redis.call('HGET', queue.base .. 'jobs', job.id) or ''
  else
    -- a run may tell of more jobs than its frame has
    job.body = bodies_of(queue, job)[job.offset] or ''
  end
  Describe.describe(queue, job, out)
end

return function(keys, args)
  local base = keys[1]
  local state, filter, place, take, counts_only = args[1], cmsgpack.unpack(args[2]), args[3], tonumber(args[4]), args[5]

  local queue, looked, picked, found, bytes = State.open(base), 0, 0, {}, 0
  local function meet(job)
    looked = looked + 1
    if Filter.picks(queue, filter, job) then
      picked = picked + 1
      if counts_only ~= '1' then
        give(queue, job, found)
        bytes = bytes + #found[#found - 2] + #found[#found]
      end
    end
    return picked < take and bytes < ReadBudget.MAX_BYTES
  end
  Walk.start(queue, { state = state, filter = filter, back = BACK[state], meet = meet }, place == '' and {} or cjson.decode(place))
  local done = take > 0 and Walk.go(queue)
  return { done and '' or cjson.encode(queue.walking.place), looked, picked, found }
end
