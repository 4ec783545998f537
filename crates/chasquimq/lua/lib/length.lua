-- length: how many jobs wait in a queue: in line, prioritized, delayed, or for their children. It may have a maximum: adds that would
-- exceed it are refused, and carry out nothing. What is there already may move and run again, and schedulers go on.
-- @cold
-- The answer to a call that would add n jobs too many: {-12, n, length, max_length}. Nil when they have room.
local function refuse_beyond(n)
  local length = S.waiting + redis.call('ZCARD', base .. 'prioritized') + redis.call('ZCARD', base .. 'delayed')
    + redis.call('ZCARD', base .. 'waiting-children')
  if length + n > S.max_length then return { -12, n, length, S.max_length } end
end
-- @warm
