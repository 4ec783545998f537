-- read_jobs: no change. Gives whole jobs, by their ids.
-- KEYS    base (also: state jobs vitals traces active log takes runs holes completed failed delayed prioritized waiting-children)
-- ARGV    ids (MessagePack array)
-- RETURNS {id, state, body, vitals (MessagePack), stack traces (JSON text) or '', ...} five a job; missing ids are left out
-- ERRORS  none      EVENTS none      COST O(jobs)
-- SOURCE  BullMQ 6.7 Queue#getJob
-- FLAGS   no-writes
local Describe = require('describe')
local Find = require('find')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local ids = cmsgpack.unpack(args[1])

  local queue = State.open(base)

  local out, seen = {}, {}
  local function give(id)
    if seen[id] then return end
    seen[id] = true
    local job = Find.locate(queue, id)
    if job then Describe.describe(queue, job, out) end
  end

  for _, id in ipairs(ids) do give(id) end
  return out
end
