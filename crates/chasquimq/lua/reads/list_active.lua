-- list_active: no change. Active jobs, a bounded step a call.
-- KEYS    base (also: state takes active log lease:<owner>)
-- ARGV    whose (all | held: of workers that have their lease | lost: of the others), cursor ('' at first)
-- RETURNS {cursor ('' = done), frames, records} (states/active), counted
-- ERRORS  none      EVENTS none      COST O(16 frames, or 500 records)
-- SOURCE  BullMQ 6.7 Queue#getActive (differs: steps)
-- FLAGS   no-writes
local Active = require('active')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local whose, cursor = args[1], args[2]

  local queue = State.open(base)

  local function concerns(owner)
    return whose == 'all' or Active.is_alive(queue, owner) == (whose == 'held')
  end

  return Active.walk(queue, cursor, concerns, true)
end
