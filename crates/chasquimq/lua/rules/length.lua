-- length: how many jobs wait in a queue: waiting, prioritized, delayed, or for their children. It may have a maximum: adds that would
-- exceed it are refused, and carry out nothing. What is there already may move and run again, and schedulers go on.
local Groups = require('groups')

-- The answer to a call that would add n jobs too many: {-12, n, length, max_length}. Nil when they have room.
local function refuse_beyond(queue, n)
  local length = queue.waiting + redis.call('ZCARD', queue.base .. 'prioritized') + redis.call('ZCARD', queue.base .. 'delayed')
    + redis.call('ZCARD', queue.base .. 'waiting-children') + Groups.count(queue)
  if length + n > queue.max_length then return { -12, n, length, queue.max_length } end
end

return {
  refuse_beyond = refuse_beyond,
}
