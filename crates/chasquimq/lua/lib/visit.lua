-- visit: work on another queue that this script reaches: a parent's, a child's. Each queue has its own state and events, which are
-- kept apart while the script is elsewhere, and ended together.
local home, visited = base, {}

-- Does the work as if it were the other queue's script; gives what it gives.
local function in_queue(other, work)
  if other == base then return work() end
  local here, known = base, visited[other]
  visited[here] = { S, event_groups, event_count, large_values, open_group }
  base = other
  if known then
    S, event_groups, event_count, large_values, open_group = known[1], known[2], known[3], known[4], known[5]
  else
    S, event_groups, event_count, large_values, open_group = {}, {}, 0, {}, nil
    load_state()
  end
  local given = work()
  visited[other] = { S, event_groups, event_count, large_values, open_group }
  base, known = here, visited[here]
  S, event_groups, event_count, large_values, open_group = known[1], known[2], known[3], known[4], known[5]
  return given
end

-- Ends the changes of every other queue that was visited.
local function flush_visited(now_ms)
  for other in pairs(visited) do
    if other ~= home then in_queue(other, function() flush_events(now_ms) end) end
  end
end
