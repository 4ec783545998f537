-- unfinished: active jobs whose run said nothing of how it ended: back to the front of the waiting list, or let go.
local Events = require('events')
local Expiry = require('expiry')
local Frame = require('frame')
local Groups = require('groups')
local KeyLimits = require('key_limits')
local Leave = require('leave')
local Stored = require('stored')

-- A job that was let go and not moved belongs to nobody: once the lease of those let go with it has run out, a scan brings it back as
-- stalled.
local NOBODY = '-'

local function give_back(queue, outcome, step)
  local finishing = queue.finishing
  local id, started = outcome[6], outcome[8]
  local active, why = Leave.take_out(queue, outcome, step)
  if not active then return why end
  local fields = Leave.own_fields(queue, id)
  if started == 1 then
    Stored.start(fields, active)
    finishing.met_limit = true
  else
    fields.as = active[2] - 1
    Expiry.note_again(queue, id, fields, fields)
    KeyLimits.give_back(queue, fields)
  end
  finishing.fields_set[#finishing.fields_set + 1] = id
  finishing.fields_set[#finishing.fields_set + 1] = cmsgpack.pack(fields)
  table.insert(finishing.front, id)
  finishing.places[id] = started == 1 and 'front' or 'back'
  Events.emit_job(queue, 'waiting', id, 'active')
  return nil
end

local function let_go(queue, outcome, step)
  local finishing = queue.finishing
  local id = outcome[6]
  local active = Leave.take_out(queue, outcome, step)
  if not active then return end
  if finishing.active_del[#finishing.active_del] == id then finishing.active_del[#finishing.active_del] = nil end
  queue.active = queue.active + 1
  Groups.note_left(queue, active[7], -1)
  -- a lease of this step alone: one that later steps renewed would keep the job from coming back
  local nobody = NOBODY .. step.owner .. '.' .. step.claim
  finishing.active_set[#finishing.active_set + 1] = id
  finishing.active_set[#finishing.active_set + 1] = cmsgpack.pack({ active[1], active[2], nobody, active[4], Frame.ANY_CLAIM, active[6], active[7] })
  redis.call('SET', queue.base .. 'lease:' .. nobody, 1, 'PX', step.lease_ms)
end

return {
  give_back = give_back,
  let_go = let_go,
}
