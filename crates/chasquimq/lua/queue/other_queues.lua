-- other_queues: work on another queue that a call reaches: a parent's, a child's. Each is opened once, and its changes end together with those of
-- the first.
local Events = require('events')
local State = require('state')

-- Gives what the work gives, which is called with the other queue.
local function in_queue(queue, other, work)
  if other == queue.base then return work(queue) end
  local home, queues = queue.call.home, queue.call.queues
  if other == home.base then return work(home) end
  if not queues[other] then queues[other] = State.open(other, queue.call) end
  return work(queues[other])
end

-- Ends the changes of every other queue that was visited.
local function flush_visited(queue, now_ms)
  for _, other in pairs(queue.call.queues) do Events.flush_events(other, now_ms) end
end

return {
  in_queue = in_queue,
  flush_visited = flush_visited,
}
