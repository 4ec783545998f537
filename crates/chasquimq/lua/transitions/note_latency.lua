-- note_latency: what a worker has measured of its jobs since it last told, and how many jobs were added since any did. The worker gathers it, so that no job costs a command.
-- KEYS    base (also: state latency memo:<client>:<slot>)
-- ARGV    client, slot, number, minutes (MessagePack: {minute, {times in line, of runs, to completion}, ...}, rules/latency)
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(minutes)
-- SOURCE  none: an extension
-- FLAGS   allow-oom
local Latency = require('latency')
local Memo = require('memo')

return function(keys, args)
  local base = keys[1]
  local client, slot, number, minutes = args[1], args[2], tonumber(args[3]), cmsgpack.unpack(args[4])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local added = Latency.added(queue)
  for i = 1, #minutes, 2 do Latency.add(base, minutes[i], minutes[i + 1], i + 1 == #minutes and added or 0) end
  Memo.remember(base, client, slot, number, 0)
  return 0
end
