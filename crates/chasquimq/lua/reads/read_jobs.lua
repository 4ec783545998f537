-- read_jobs: no change. Gives whole jobs, by their ids; a bounded step a call, when they are large.
-- KEYS    base (also: state jobs vitals traces active log takes runs holes completed failed delayed prioritized waiting-children)
-- ARGV    ids (MessagePack array)
-- RETURNS {id, state, body, state fields (MessagePack), stack traces (JSON text) or '', ...} five a job; body: as in list_jobs; missing ids are
--         left out; then, when some are left for another call, how many ids were looked at
-- ERRORS  none      EVENTS none      COST O(jobs), or 1 MiB
-- SOURCE  BullMQ 6.7 Queue#getJob
-- FLAGS   no-writes
local Describe = require('describe')
local Find = require('find')
local ReadBudget = require('read_budget')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local ids = cmsgpack.unpack(args[1])

  local queue = State.open(base)

  local out, seen, bytes, last_frame = {}, {}, 0, nil
  local function give(id)
    if seen[id] then return end
    seen[id] = true
    local job = Find.locate(queue, id)
    if not job then return end
    Describe.describe(queue, job, out)
    bytes = bytes + #out[#out - 2] + #out[#out]
    if job.blob and job.first ~= last_frame then bytes, last_frame = bytes + #job.blob, job.first end
  end

  for i, id in ipairs(ids) do
    give(id)
    if bytes > ReadBudget.MAX_BYTES and i < #ids then
      out[#out + 1] = i
      break
    end
  end
  return out
end
