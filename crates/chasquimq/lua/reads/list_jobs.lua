-- list_jobs: no change. Gives jobs by state and rank, a bounded step a call; active ones are listed by list_active.
-- KEYS    base (also: state jobs vitals traces log runs holes gone active completed failed delayed prioritized waiting-children front)
-- ARGV    types (MessagePack array; group:<group>: the jobs that wait in that group), start, stop (ranks, negative from the end), ascending (1|0), ids_only (1|0), cursor (MessagePack;
--         '' at first)
-- RETURNS {cursor ('' = done), parts, jobs}; parts: {type's index, 1 if its jobs come in reverse, jobs, ...};
--         jobs: {id, state, body, state fields (MessagePack), stack traces (JSON text) or '', ...} five a job, or its id alone;
--         body is '' when the job is gone by now, and tells where to read it where it lies apart (Frame.given_bodies)
-- ERRORS  none      EVENTS none      COST O(1000 jobs, or 1000 entries passed over to reach a rank, or 1 MiB)
-- SOURCE  BullMQ 6.7 Queue#getJobs, #getRanges
-- FLAGS   no-writes
local ByRank = require('by_rank')
local State = require('state')
local WaitingList = require('waiting_list')

-- Of a queue: listing (lists/by_rank), and of it parts (RETURNS) and states, one a job.

local function note_part(listing, index, walk, before)
  WaitingList.append(listing.parts, index, walk.turn and 1 or 0, #listing.ids - before)
  local state = walk.state:match('^group:') and 'waiting' or walk.state
  for i = before + 1, #listing.ids do listing.states[i] = state end
end

-- Lists jobs until a call has done enough. Gives where the next one goes on; '' = nowhere.
local function list_types(queue, asked, cursor)
  local listing, types, index, walk = queue.listing, asked.types, 1, nil
  if cursor ~= '' then
    local known = cmsgpack.unpack(cursor)
    index, walk = known[1], known[2]
  end
  while index <= #types do
    walk = walk or ByRank.start_walk(queue, types[index], asked.start, asked.stop, asked.ascending)
    if walk then
      local before = #listing.ids
      local done = ByRank.go_on(queue, walk)
      if #listing.ids > before then note_part(listing, index, walk, before) end
      if not done then break end
    end
    index, walk = index + 1, nil
  end
  return index <= #types and cmsgpack.pack({ index, walk }) or ''
end

-- What a hash holds of the records among the jobs, by their places.
local function read_own(queue, own, key)
  local found = {}
  if #own == 0 or redis.call('EXISTS', queue.base .. key) == 0 then return found end
  for from = 1, #own, 1000 do
    local ids = {}
    for i = from, math.min(from + 999, #own) do ids[#ids + 1] = own[i][2] end
    for i, raw in ipairs(redis.call('HMGET', queue.base .. key, unpack(ids))) do found[own[from + i - 1][1]] = raw end
  end
  return found
end

-- The jobs, whole; records are read all at once.
local function read_whole(queue)
  local listing, own, out = queue.listing, {}, {}
  for i, id in ipairs(listing.ids) do
    if not listing.bodies[i] then own[#own + 1] = { i, id } end
  end
  local bodies, fields, traces = read_own(queue, own, 'jobs'), read_own(queue, own, 'vitals'), read_own(queue, own, 'traces')
  for i, id in ipairs(listing.ids) do
    local n = #out
    out[n + 1], out[n + 2] = id, listing.states[i]
    if listing.bodies[i] then
      out[n + 3], out[n + 4], out[n + 5] = listing.bodies[i], cmsgpack.pack(listing.fields[i]), ''
    else
      out[n + 3], out[n + 4], out[n + 5] = bodies[i] or '', fields[i] or '', traces[i] or ''
    end
  end
  return out
end

return function(keys, args)
  local base = keys[1]
  local types, start, stop = cmsgpack.unpack(args[1]), tonumber(args[2]), tonumber(args[3])
  local ascending, ids_only, cursor = args[4] == '1', args[5] == '1', args[6]

  local queue = State.open(base)

  ByRank.start(queue, ids_only)
  local listing = queue.listing
  listing.parts, listing.states = {}, {}
  local next_cursor = list_types(queue, { types = types, start = start, stop = stop, ascending = ascending }, cursor)
  return { next_cursor, listing.parts, ids_only and listing.ids or read_whole(queue) }
end
