-- kinds: what a script is about to do is refused as a whole, not half-way, where a key that it writes holds what is not of this queue.

-- count: a command that gives the size of what the key should hold.
local function require_kind(count, suffix)
  local size = redis.pcall(count, base .. suffix)
  if type(size) == 'number' then return end
  if not size.err:find('WRONGTYPE', 1, true) then error(size) end
  refuse_key(suffix, redis.call('TYPE', base .. suffix).ok)
end

-- What the ways into the line write besides the log, which must not get ahead of the state.
local function require_kinds_of_line()
  require_kind('HLEN', 'jobs')
  require_kind('LLEN', 'front')
  require_kind('ZCARD', 'delayed')
  require_kind('ZCARD', 'prioritized')
  require_kind('ZCARD', 'wake')
end
