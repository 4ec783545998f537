-- read_jobs: no change. Gives whole jobs, by id or by state and rank.
-- KEYS    base (also: state jobs vitals traces active log takes runs holes completed failed delayed prioritized waiting-children front)
-- ARGV    what (MessagePack: {ids = {id, ...}} or {types = {type, ...}, start, stop, ascending})
-- RETURNS {id, state, body, vitals (MessagePack), stack traces (JSON text) or '', ...} five a job; missing ids are left out
-- ERRORS  none      EVENTS none      COST O(jobs), plus the entries passed over to reach a rank of the waiting line
-- SOURCE  BullMQ 6.7 Queue#getJob, #getJobs
local base = KEYS[1]
local what = cmsgpack.unpack(ARGV[1])

-- @include lib/state
-- @include lib/line
-- @include lib/frame
-- @include lib/keep
-- @include lib/locate
-- @include lib/ranks

local out, seen = {}, {}
local function give(id)
  if seen[id] then return end
  seen[id] = true
  local job = locate(id)
  if not job then return end
  local vitals
  if job.record then
    local raw = redis.call('HGET', base .. 'vitals', id)
    vitals = raw and cmsgpack.unpack(raw) or {}
    if job.active then
      vitals.po, vitals.as = job.active[1], job.active[2]
      vitals.pb = job.active[4] ~= '' and job.active[4] or nil
    end
  else
    vitals = frame_vitals(job)
  end
  out[#out + 1] = id
  out[#out + 1] = job.state
  out[#out + 1] = job.body or frame_body(job)
  out[#out + 1] = cmsgpack.pack(vitals)
  out[#out + 1] = job.record and redis.call('HGET', base .. 'traces', id) or ''
end

if what.ids then
  for _, id in ipairs(what.ids) do give(id) end
else
  for _, type in ipairs(what.types) do
    for _, id in ipairs(ids_by_rank(type, what.start, what.stop, what.ascending)) do give(id) end
  end
end
return out
