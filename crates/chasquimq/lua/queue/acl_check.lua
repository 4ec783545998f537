-- acl_check: what a call is about to do is refused as a whole, not half-way, for a command that the user may not give.
local function require_each(commands, ...)
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(command, ...) then
      error({ err = 'NOPERM this user has no permissions to run the \'' .. command:lower() .. '\' command' })
    end
  end
end

local function require_commands(queue, commands)
  -- since 8.6 the server also wants as many arguments as the command takes at least
  require_each(commands, queue.base .. 'log', '0', '0', '0')
end

return {
  require_each = require_each,
  require_commands = require_commands,
}
