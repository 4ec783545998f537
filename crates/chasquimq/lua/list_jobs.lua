-- list_jobs: no change. Gives jobs by state and rank, a bounded step a call; active ones are listed by list_active.
-- KEYS    base (also: state jobs vitals traces log runs holes gone completed failed delayed prioritized waiting-children front)
-- ARGV    types (MessagePack array), start, stop (ranks, negative from the end), ascending (1|0), ids_only (1|0), cursor (MessagePack;
--         '' at first)
-- RETURNS {cursor ('' = done), parts, jobs}; parts: {type's index, 1 if its jobs come in reverse, jobs, ...};
--         jobs: {id, state, body, state fields (MessagePack), stack traces (JSON text) or '', ...} five a job, or its id alone;
--         body is '' when the job is gone by now
-- ERRORS  none      EVENTS none      COST O(1000 jobs, or 1000 entries passed over to reach a rank, or 1 MiB)
-- SOURCE  BullMQ 6.7 Queue#getJobs, #getRanges
-- FLAGS   no-writes
local Ranks = require('ranks')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local types, start, stop = cmsgpack.unpack(args[1]), tonumber(args[2]), tonumber(args[3])
  local ascending, ids_only, cursor = args[4] == '1', args[5] == '1', args[6]

  local queue = State.open(base)

  Ranks.start(queue, ids_only)
  local listing = queue.listing

  local parts, states = {}, {}
  local index, walk = 1, nil
  if cursor ~= '' then
    local known = cmsgpack.unpack(cursor)
    index, walk = known[1], known[2]
  end

  local function note_part(before)
    parts[#parts + 1] = index
    parts[#parts + 1] = walk.turn and 1 or 0
    parts[#parts + 1] = #listing.ids - before
    for i = before + 1, #listing.ids do states[i] = walk.state end
  end

  while index <= #types do
    walk = walk or Ranks.start_walk(queue, types[index], start, stop, ascending)
    if walk then
      local before = #listing.ids
      local done = Ranks.go_on(queue, walk)
      if #listing.ids > before then note_part(before) end
      if not done then break end
    end
    index, walk = index + 1, nil
  end
  local next_cursor = index <= #types and cmsgpack.pack({ index, walk }) or ''
  if ids_only then return { next_cursor, parts, listing.ids } end

  -- records are read all at once
  local own = {}
  for i, id in ipairs(listing.ids) do
    if not listing.bodies[i] then own[#own + 1] = { i, id } end
  end

  local function read_own(key, into)
    if redis.call('EXISTS', base .. key) == 0 then return end
    for from = 1, #own, 1000 do
      local ids = {}
      for i = from, math.min(from + 999, #own) do ids[#ids + 1] = own[i][2] end
      for i, raw in ipairs(redis.call('HMGET', base .. key, unpack(ids))) do into[own[from + i - 1][1]] = raw end
    end
  end

  local bodies, fields, traces = {}, {}, {}
  if #own > 0 then
    read_own('jobs', bodies)
    read_own('vitals', fields)
    read_own('traces', traces)
  end

  local out = {}
  for i, id in ipairs(listing.ids) do
    local n = #out
    out[n + 1], out[n + 2] = id, states[i]
    if listing.bodies[i] then
      out[n + 3], out[n + 4], out[n + 5] = listing.bodies[i], cmsgpack.pack(listing.fields[i]), ''
    else
      out[n + 3], out[n + 4], out[n + 5] = bodies[i] or '', fields[i] or '', traces[i] or ''
    end
  end
  return { next_cursor, parts, out }
end
