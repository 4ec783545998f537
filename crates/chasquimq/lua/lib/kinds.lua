-- kinds: what a call is about to do is refused as a whole, not half-way, where a key that it writes holds what is not of this queue.
local State = require('state')

-- count: a command that gives the size of what the key should hold.
local function require_kind(queue, count, suffix)
  local size = redis.pcall(count, queue.base .. suffix)
  if type(size) == 'number' then return end
  if not size.err:find('WRONGTYPE', 1, true) then error(size) end
  State.refuse_key(queue, suffix, redis.call('TYPE', queue.base .. suffix).ok)
end

-- What the ways into the line write besides the log, which must not get ahead of the state.
local function require_kinds_of_line(queue)
  require_kind(queue, 'HLEN', 'jobs')
  require_kind(queue, 'LLEN', 'front')
  require_kind(queue, 'ZCARD', 'delayed')
  require_kind(queue, 'ZCARD', 'prioritized')
  require_kind(queue, 'ZCARD', 'wake')
end

return {
  require_kind = require_kind,
  require_kinds_of_line = require_kinds_of_line,
}
