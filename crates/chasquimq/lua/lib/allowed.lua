-- allowed: what a script is about to do is refused as a whole, not half-way, for a command that the user may not give.
local function require_commands(commands)
  for _, command in ipairs(commands) do
    if not redis.acl_check_cmd(command, base .. 'log') then
      error({ err = 'NOPERM this user has no permissions to run the \'' .. command:lower() .. '\' command' })
    end
  end
end
