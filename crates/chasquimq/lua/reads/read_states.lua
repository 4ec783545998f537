-- read_states: no change. What tells whether anything has happened in queues, of many at once; to a replica, which may be behind, it is not allowed.
-- KEYS    base (also: state delays)
-- ARGV    others (MessagePack array of the bases of the others; in a cluster none)
-- RETURNS {seconds (the server's clock), {state, delays, ...} (of each, as they are stored)}
-- ERRORS  none      EVENTS none      COST O(queues)
-- SOURCE  ours: a look at a queue in which nothing happens costs no call of its own
-- FLAGS   allow-oom

return function(keys, args)
  local base = keys[1]
  local others = cmsgpack.unpack(args[1])

  local names = { base .. 'state', base .. 'delays' }
  for _, other in ipairs(others) do
    names[#names + 1] = other .. 'state'
    names[#names + 1] = other .. 'delays'
  end
  return { redis.call('TIME')[1], redis.call('MGET', unpack(names)) }
end
