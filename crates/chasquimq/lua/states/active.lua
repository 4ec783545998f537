-- active: active jobs, as they lie in the hashes takes (frames that somebody has taken) and active (records), and a step over them.
local Frame = require('frame')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

-- What a step looks at; where each frame that is of interest has to be read for the number of its jobs, fewer.
local FRAMES, FRAMES_COUNTED, RECORDS = 250, 16, 500

-- First number and contents of one; nobody holds what cannot be read.
local function read_frame_holder(field, raw)
  return tonumber(field) or 0, Frame.read_holder(raw) or { 0, '', '', '', 0 }
end

-- The claim of a holder or of who holds a record, a whole number; ANY_CLAIM when it cannot be read.
local function claim_of(held)
  local claim = held[5]
  return type(claim) == 'number' and claim % 1 == 0 and claim or Frame.ANY_CLAIM
end

-- Number of jobs and blob of one. Of a frame that is gone from the log the holder knows how many jobs it had, unless it had all of them.
local function held_frame(queue, first, holder)
  local entry = redis.call('XRANGE', queue.base .. 'log', State.entry_id(first, 0), State.entry_id(first, WaitingList.REFERENCE_SEQ), 'COUNT', 1)[1]
  if not entry then return #holder[2], '' end
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
    local first, holder = read_frame_holder(page[i], page[i + 1])
    if concerns(holder[3]) then
      local chars, header = holder[2], Frame.header_in(holder)
      if counted and chars == '' then chars = string.rep('1', (held_frame(queue, first, holder))) end
      WaitingList.append(frames, first, chars, holder[1], claim_of(holder), header and header[1] or '')
    end
  end
  return frames
end

-- Those of a page of records: id, started_ms, claim, three a record.
local function list_records(page, concerns)
  local records = {}
  for i = 1, #page, 2 do
    local active = Stored.active(page[i + 1])
    if concerns(active[3]) then WaitingList.append(records, page[i], active[1], claim_of(active)) end
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
  read_frame_holder = read_frame_holder,
  claim_of = claim_of,
  held_frame = held_frame,
  is_alive = is_alive,
  walk = walk,
}
