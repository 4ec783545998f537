-- held: active jobs, as they lie in the hashes takes (frames that somebody has taken) and active (records), and a step over them.
local Frame = require('frame')
local Line = require('line')
local State = require('state')
local Stored = require('stored')

-- What a step looks at; where each frame that is of interest has to be read for the number of its jobs, fewer.
local FRAMES, FRAMES_COUNTED, RECORDS = 250, 16, 500

-- First number and contents of one; nobody holds what cannot be read.
local function held_take(field, raw)
  return tonumber(field) or 0, Frame.read_take(raw) or { 0, '', '', '', 0 }
end

-- The claim of a take or of who holds a record, a whole number; ANY_CLAIM when it cannot be read.
local function held_claim(held)
  local claim = held[5]
  return type(claim) == 'number' and claim % 1 == 0 and claim or Frame.ANY_CLAIM
end

-- Number of jobs and blob of one. Of a frame that is gone from the log the take knows how many jobs it had, unless it had all of them.
local function held_frame(queue, first, take)
  local entry = redis.call('XRANGE', queue.base .. 'log', State.entry_id(first, 0), State.entry_id(first, Line.REFERENCE_SEQ), 'COUNT', 1)[1]
  if not entry then return #take[2], '' end
  return tonumber(entry[1]:match('%-(%d+)$')), entry[2][2] or ''
end

-- Whether a worker has its lease. Asked once a call.
local function is_alive(queue, owner)
  local alive = queue.alive or {}
  queue.alive = alive
  if alive[owner] == nil then alive[owner] = redis.call('EXISTS', queue.base .. 'lease:' .. owner) == 1 end
  return alive[owner]
end

-- Lists those of a page of takes whose owner concerns the caller: first, chars ('' = all, of nobody knows how many, unless they are counted),
-- started_ms, claim, what their ids begin with ('' = nothing), five a frame.
local function list_frames(queue, page, concerns, counted)
  local frames = {}
  for i = 1, #page, 2 do
    local first, take = held_take(page[i], page[i + 1])
    if concerns(take[3]) then
      local chars, header = take[2], Frame.header_in(take)
      if counted and chars == '' then chars = string.rep('1', (held_frame(queue, first, take))) end
      Line.append(frames, first, chars, take[1], held_claim(take), header and header[1] or '')
    end
  end
  return frames
end

-- Those of a page of records: id, started_ms, claim, three a record.
local function list_records(page, concerns)
  local records = {}
  for i = 1, #page, 2 do
    local active = Stored.active(page[i + 1])
    if concerns(active[3]) then Line.append(records, page[i], active[1], held_claim(active)) end
  end
  return records
end

-- A step over the active jobs: {cursor ('' = done), frames, records}. cursor: '' at first. A job that is active all the while is found, one
-- that leaves its frame meanwhile perhaps twice.
local function walk(queue, cursor, concerns, counted)
  local frames, records = {}, {}
  local phase, at = cursor:match('^(%l)(%d+)$')
  phase, at = phase or 't', at or '0'
  if phase == 't' then
    local found = redis.call('HSCAN', queue.base .. 'takes', at, 'COUNT', counted and FRAMES_COUNTED or FRAMES)
    frames, at = list_frames(queue, found[2], concerns, counted), found[1]
    if at == '0' then phase = 'a' end
  end
  if phase == 'a' then
    local found = redis.call('HSCAN', queue.base .. 'active', at, 'COUNT', RECORDS)
    records, at = list_records(found[2], concerns), found[1]
    if at == '0' then return { '', frames, records } end
  end
  return { phase .. at, frames, records }
end

return {
  held_take = held_take,
  held_claim = held_claim,
  held_frame = held_frame,
  is_alive = is_alive,
  walk = walk,
}
