-- held: frames that somebody has taken, as they lie in the hash takes.
local Frame = require('frame')
local Line = require('line')
local State = require('state')

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

return {
  held_take = held_take,
  held_claim = held_claim,
  held_frame = held_frame,
}
