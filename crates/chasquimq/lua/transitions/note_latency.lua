-- note_latency: what a worker has measured of its jobs since it last told, and how many jobs were added since any did. The worker gathers it, so that no job costs a command.
-- KEYS    base (also: state latency group-latency:<group> groups-measured memo:<client>:<slot>)
-- ARGV    client, slot, number, minutes (MessagePack: {minute, {times in line, of runs, to completion}, ...}, rules/latency), groups (the same: {group, minute, times, ...})
-- RETURNS 0
-- ERRORS  none      EVENTS none      COST O(minutes + groups)
-- SOURCE  none: an extension
-- FLAGS   allow-oom
local Latency = require('latency')
local Memo = require('memo')

return function(keys, args)
  local base = keys[1]
  local client, slot, number = args[1], args[2], tonumber(args[3])
  local minutes, groups = cmsgpack.unpack(args[4]), cmsgpack.unpack(args[5])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  for i = 1, #minutes, 2 do Latency.add_of_queue(base, minutes[i], minutes[i + 1], i + 1 == #minutes and Latency.added(queue) or 0) end
  Latency.add_of_groups(base, groups)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
