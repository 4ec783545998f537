-- list_groups: no change. Groups with jobs (states/groups), by status: those that have turns in their order, limited ones by when that ends.
-- KEYS    base (also: state groups groups-limited groups-maxed groups-paused group:<group>)
-- ARGV    statuses (MessagePack: {waiting | limited | maxed | paused, ...}), start, stop (ranks over all of them, negative from the end)
-- RETURNS {number of groups of each status, {group, status, jobs, ...}}
-- ERRORS  none      EVENTS none      COST O(log groups + listed)
-- SOURCE  ours
-- FLAGS   no-writes
local Groups = require('groups')
local State = require('state')

local SETS = { waiting = 'groups', limited = 'groups-limited', maxed = 'groups-maxed', paused = 'groups-paused' }

-- The groups of these ranks, from 0, in the sets behind each other.
local function list(queue, statuses, counts, start, stop)
  local listed = {}
  for i, status in ipairs(statuses) do
    if stop >= 0 and start < counts[i] then
      for _, group in ipairs(redis.call('ZRANGE', queue.base .. SETS[status], math.max(start, 0), stop)) do
        local jobs = redis.call('ZCARD', Groups.key_of(queue, group))
        if jobs > 0 then
          local n = #listed
          listed[n + 1], listed[n + 2], listed[n + 3] = group, status, jobs
        end
      end
    end
    start, stop = start - counts[i], stop - counts[i]
  end
  return listed
end

return function(keys, args)
  local base = keys[1]
  local statuses, start, stop = cmsgpack.unpack(args[1]), tonumber(args[2]), tonumber(args[3])

  local queue = State.open(base)

  local counts, all = {}, 0
  for i, status in ipairs(statuses) do
    counts[i] = redis.call('ZCARD', base .. SETS[status])
    all = all + counts[i]
  end
  if start < 0 then start = math.max(all + start, 0) end
  if stop < 0 then stop = all + stop end
  return { counts, list(queue, statuses, counts, start, stop) }
end
