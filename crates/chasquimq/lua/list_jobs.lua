-- list_jobs: no change. Gives jobs by state and rank, a bounded step a call.
-- KEYS    base (also: state jobs vitals traces active log takes runs holes gone completed failed delayed prioritized waiting-children
--         front)
-- ARGV    types (MessagePack array), start, stop (ranks, negative from the end), ascending (1|0), ids_only (1|0), cursor (MessagePack;
--         '' at first)
-- RETURNS {cursor ('' = done), parts, jobs}; parts: {type's index, 1 if its jobs come in reverse, jobs, ...};
--         jobs: {id, state, body, vitals (MessagePack), stack traces (JSON text) or '', ...} five a job, or its id alone;
--         body is '' when the job is gone by now
-- ERRORS  none      EVENTS none      COST O(1000 jobs, or 1000 entries passed over to reach a rank, or 1 MiB)
-- SOURCE  BullMQ 6.7 Queue#getJobs, #getRanges
local base = KEYS[1]
local types, start, stop = cmsgpack.unpack(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local ascending, ids_only, cursor = ARGV[4] == '1', ARGV[5] == '1', ARGV[6]

-- @include lib/state
-- @include lib/line
-- @include lib/frame
-- @include lib/ranks

-- ids are short
if ids_only then L.most, L.hashes = 5000, {} end

local parts, states = {}, {}
local index, walk = 1, nil
if cursor ~= '' then
  local known = cmsgpack.unpack(cursor)
  index, walk = known[1], known[2]
end

local function note_part(before)
  parts[#parts + 1] = index
  parts[#parts + 1] = walk.turn and 1 or 0
  parts[#parts + 1] = #L.ids - before
  for i = before + 1, #L.ids do states[i] = walk.state end
end

while index <= #types do
  walk = walk or start_walk(types[index], start, stop, ascending)
  if walk then
    local before = #L.ids
    local done = go_on(walk)
    if #L.ids > before then note_part(before) end
    if not done then break end
  end
  index, walk = index + 1, nil
end
local next_cursor = index <= #types and cmsgpack.pack({ index, walk }) or ''
if ids_only then return { next_cursor, parts, L.ids } end

-- records are read all at once
local own = {}
for i, id in ipairs(L.ids) do
  if not L.bodies[i] then own[#own + 1] = { i, id } end
end

local function read_own(key, into)
  if redis.call('EXISTS', base .. key) == 0 then return end
  for from = 1, #own, 1000 do
    local ids = {}
    for i = from, math.min(from + 999, #own) do ids[#ids + 1] = own[i][2] end
    for i, raw in ipairs(redis.call('HMGET', base .. key, unpack(ids))) do into[own[from + i - 1][1]] = raw end
  end
end

local bodies, vitals, traces, actives = {}, {}, {}, {}
if #own > 0 then
  read_own('jobs', bodies)
  read_own('vitals', vitals)
  read_own('traces', traces)
  read_own('active', actives)
end

-- An active job's start is told by who holds it.
local function active_vitals(i)
  local known = stored().vitals(vitals[i])
  stored().start(known, stored().active(actives[i]))
  return cmsgpack.pack(known)
end

local out = {}
for i, id in ipairs(L.ids) do
  local n = #out
  out[n + 1], out[n + 2] = id, states[i]
  if L.bodies[i] then
    out[n + 3], out[n + 4], out[n + 5] = L.bodies[i], cmsgpack.pack(L.vitals[i]), ''
  else
    out[n + 3], out[n + 5] = bodies[i] or '', traces[i] or ''
    out[n + 4] = actives[i] and active_vitals(i) or vitals[i] or ''
  end
end
return { next_cursor, parts, out }
