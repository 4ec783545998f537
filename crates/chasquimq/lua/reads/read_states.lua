-- read_states: no change. What tells whether anything has happened in queues, of many at once; to a replica, which may be behind, it is not allowed.
-- KEYS    base (also: state delays)
-- ARGV    the bases of the others (all of one server, in a cluster of one slot)
-- RETURNS {seconds (the server's clock), {state, delays, ...} (of each, as they are stored)}
-- ERRORS  none      EVENTS none      COST O(queues)
-- SOURCE  ours: a look at a queue in which nothing happens costs no call of its own
-- FLAGS   allow-oom

return function(keys, args)
  local names = { keys[1] .. 'state', keys[1] .. 'delays' }
  for _, base in ipairs(args) do
    names[#names + 1] = base .. 'state'
    names[#names + 1] = base .. 'delays'
  end
  return { redis.call('TIME')[1], redis.call('MGET', unpack(names)) }
end
