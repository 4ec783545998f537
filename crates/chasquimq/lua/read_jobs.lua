-- read_jobs: no change. Gives whole jobs, by their ids.
-- KEYS    base (also: state jobs vitals traces active log takes runs holes completed failed delayed prioritized waiting-children)
-- ARGV    ids (MessagePack array)
-- RETURNS {id, state, body, vitals (MessagePack), stack traces (JSON text) or '', ...} five a job; missing ids are left out
-- ERRORS  none      EVENTS none      COST O(jobs)
-- SOURCE  BullMQ 6.7 Queue#getJob
local base = KEYS[1]
local ids = cmsgpack.unpack(ARGV[1])

-- @include lib/state
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/describe

local out, seen = {}, {}
local function give(id)
  if seen[id] then return end
  seen[id] = true
  local job = locate(id)
  if job then describe(job, out) end
end

for _, id in ipairs(ids) do give(id) end
return out
