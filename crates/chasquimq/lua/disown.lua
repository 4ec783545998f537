-- disown: active -> front of waiting, for jobs that a living worker does not hold, though it did by what the server remembers: a server
-- that takes the place of another may lack the last that happened there, such as that a job has ended. Once however often it is sent:
-- a copy that comes late would take away what the worker has taken meanwhile.
-- KEYS    base (also: state meta jobs vitals traces active log front takes frames events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, owner, max_stalled, held (MessagePack: {id, claim, ...})
-- RETURNS {id, ...} of the jobs brought back
-- ERRORS  none      EVENTS waiting, stalled      COST O(active)
-- SOURCE  none; BullMQ's locks run out then
-- FLAGS   allow-oom
local Memo = require('memo')
local Reclaim = require('reclaim')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local owner, max_stalled, held = args[5], tonumber(args[6]), cmsgpack.unpack(args[7])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local claims = {}
  for i = 1, #held, 2 do
    local id = held[i]
    claims[id] = claims[id] or {}
    claims[id][held[i + 1]] = true
  end
  local brought_back = Reclaim.reclaim(queue, now_ms, max_stalled, function(other) return other == owner end, claims)
  Memo.remember(base, client, slot, number, brought_back)
  return brought_back
end
