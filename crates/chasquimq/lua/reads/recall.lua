-- recall: no change. What a call was answered that is refused now: it was carried out, its reply was lost, and the server has filled up, say, or lost its
-- replicas since.
-- KEYS    base (also: state memo:<client>:<slot>)
-- ARGV    client, slot, number
-- RETURNS the answer | nil: it was not carried out
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  BullMQ 6.7 has none: its adds are sent once
-- FLAGS   no-writes
local Memo = require('memo')

return function(keys, args)
  local base = keys[1]
  local client, slot, number = args[1], args[2], tonumber(args[3])

  local _, known = Memo.read_beside(base, Memo.key_of(base, client, slot), number)
  return known and cmsgpack.unpack(known) or nil
end
