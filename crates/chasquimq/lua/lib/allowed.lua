-- allowed: what a call is about to do is refused as a whole, not half-way, for a command that the user may not give.
local function require_commands(queue, commands)
  for _, command in ipairs(commands) do
    -- since 8.6 the server also wants as many arguments as the command takes at least
    if not redis.acl_check_cmd(command, queue.base .. 'log', '0', '0', '0') then
      error({ err = 'NOPERM this user has no permissions to run the \'' .. command:lower() .. '\' command' })
    end
  end
end

return {
  require_commands = require_commands,
}
