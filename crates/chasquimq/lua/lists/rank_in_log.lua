-- rank_in_log: where in the log the job of a rank lies, found by its number, without passing over the jobs before it.
-- Jobs of frames have the numbers of their places. So a rank lies as many numbers behind the waiting list's first one, and a number more for each hole
-- before it, where the log is even: from its head up to some number, every number is that of a job of a frame, or of a hole. Two counts tell
-- whether it is, without a look at its entries:
--   no jobs wait there by references: as many have records as are in other places;
--   jobs and holes together are as many as the numbers: frames do not overlap, so that none of the numbers is another job's, or nobody's.
-- What follows may be anything (references of jobs that are tried again): entries of the tail are counted off until the rest is even.
-- Why: 100 jobs from the middle of a million cost the server 73 ms by passing over those before them.
local Find = require('find')
local ReadBudget = require('read_budget')
local State = require('state')
local Stored = require('stored')

-- With more frames with holes, reading these costs as much as passing over jobs does. Of the tail no more entries are read than one for sixteen
-- jobs that would be passed over, a page at a time.
local MOST_HOLES, MOST_ENTRIES, PAGE, JOBS_AN_ENTRY = 1000, 500, 16, 16
-- Where jobs have records; a run, of jobs without, has a member of `completed` too.
local WITH_RECORDS = { { 'HLEN', 'jobs', 1 }, { 'HLEN', 'runs', 1 }, { 'LLEN', 'front', -1 }, { 'HLEN', 'active', -1 }, { 'ZCARD', 'completed', -1 },
  { 'ZCARD', 'failed', -1 }, { 'ZCARD', 'delayed', -1 }, { 'ZCARD', 'prioritized', -1 }, { 'ZCARD', 'grouped', -1 }, { 'ZCARD', 'waiting-children', -1 } }

-- Frames with holes: firsts, their first numbers in order; by first number, jobs that each was added with, and gone of these; all_gone, and records
-- of them all. nil when they are too many.
local function read_holes(queue)
  local holes = { firsts = {}, jobs = {}, gone = {}, all_gone = 0, records = 0 }
  if queue.holes > MOST_HOLES then return nil end
  local stored = queue.holes > 0 and redis.call('HGETALL', queue.base .. 'holes') or {}
  for i = 1, #stored, 2 do
    local first, chars = tonumber(stored[i]) or 0, stored[i + 1]
    local _, gone = chars:gsub('0', '')
    local _, records = chars:gsub('r', '')
    holes.firsts[#holes.firsts + 1], holes.jobs[first], holes.gone[first] = first, #chars, gone
    holes.all_gone, holes.records = holes.all_gone + gone, holes.records + records
  end
  table.sort(holes.firsts)
  return holes
end

-- How many jobs wait by references; nil when it is not known.
local function count_references(queue, holes)
  local count = -holes.records
  for _, of in ipairs(WITH_RECORDS) do
    local size = redis.pcall(of[1], queue.base .. of[2])
    -- another program's key
    if type(size) ~= 'number' then return nil end
    count = count + of[3] * size
  end
  return count
end

-- The log from its head: numbers from first to last, jobs, and of these references. nil when it does not begin with a frame.
local function whole_log(queue, jobs, holes)
  local head = redis.call('XRANGE', queue.base .. 'log', '(' .. State.entry_id(queue.cursor_ms, queue.cursor_seq), '+', 'COUNT', 1)[1]
  local references = head and head[2][1] == 'f' and count_references(queue, holes)
  return references and { first = tonumber(head[1]:match('^%d+')), last = queue.id, jobs = jobs, references = references }
end

local function is_even(span, holes)
  return span.references == 0 and span.jobs + holes.all_gone == span.last - span.first + 1
end

-- Leaves out the last entry.
local function cut(span, holes, ms, seq, entry)
  if entry[2][1] == 'f' and seq >= 1 and seq <= 64 then
    local gone = holes.gone[ms] or 0
    span.last, span.jobs, holes.all_gone = ms - 1, span.jobs - (seq - gone), holes.all_gone - gone
  else
    local count = #Stored.ids(entry[2][2])
    span.last, span.jobs, span.references = math.min(span.last, ms), span.jobs - count, span.references - count
  end
end

-- Cuts entries off until the rest is even. False when it is not, as far as this looks.
local function cut_uneven(queue, span, holes, rank, most)
  local listing, before, looked = queue.listing, '+', 0
  while not is_even(span, holes) do
    if looked >= most or listing.bytes >= ReadBudget.MAX_BYTES then return false end
    local entries = redis.call('XREVRANGE', queue.base .. 'log', before, '-', 'COUNT', PAGE)
    if #entries == 0 then return false end
    for _, entry in ipairs(entries) do
      local ms, seq = entry[1]:match('^(%d+)-(%d+)$')
      cut(span, holes, tonumber(ms), tonumber(seq), entry)
      if span.jobs <= rank then return false end
      listing.bytes = listing.bytes + #entry[2][2]
      if is_even(span, holes) then break end
    end
    before, looked = '(' .. entries[#entries][1], looked + #entries
  end
  listing.entries = listing.entries + looked
  return true
end

-- Where in the log the job of a rank (0: the first) lies, of so many in the log: first number and size of its frame; how many jobs of it
-- are left, and how many of these stand before the job. nil when it is not known. `far`: at least so many jobs would be passed over.
local function find(queue, rank, jobs, far)
  -- which references are stale is known by what stands before them
  local holes = rank >= 0 and queue.stale == 0 and read_holes(queue)
  local span = holes and whole_log(queue, jobs, holes)
  if not span or not cut_uneven(queue, span, holes, rank, math.min(far / JOBS_AN_ENTRY, MOST_ENTRIES)) then return nil end
  local number = span.first + rank
  for _, first in ipairs(holes.firsts) do
    if number < first then break end
    local left = holes.jobs[first] - holes.gone[first]
    if number < first + left then return first, holes.jobs[first], left, number - first end
    number = number + holes.gone[first]
  end
  local first, n = Find.frame_of(queue, number)
  if not first then return nil end
  return first, n, n, number - first
end

return {
  find = find,
}
