-- type_check: what a call is about to do is refused as a whole, not half-way, where a key that it writes holds what is not of this queue.
local State = require('state')

-- count: a command that gives the size of what the key should hold.
local function require_type(queue, count, suffix)
  local size = redis.pcall(count, queue.base .. suffix)
  if type(size) == 'number' then return end
  if not size.err:find('WRONGTYPE', 1, true) then error(size) end
  State.refuse_key(queue, suffix, redis.call('TYPE', queue.base .. suffix).ok)
end

-- What the ways into the waiting list write besides the log, which must not get ahead of the state.
local function require_types_of_waiting(queue)
  require_type(queue, 'HLEN', 'jobs')
  require_type(queue, 'LLEN', 'front')
  require_type(queue, 'ZCARD', 'delayed')
  require_type(queue, 'ZCARD', 'prioritized')
  require_type(queue, 'ZCARD', 'wake')
end

return {
  require_type = require_type,
  require_types_of_waiting = require_types_of_waiting,
}
