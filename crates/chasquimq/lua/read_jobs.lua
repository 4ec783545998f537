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

for _, id in ipairs(ids) do give(id) end
return out
