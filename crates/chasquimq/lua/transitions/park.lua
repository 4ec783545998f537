-- park: no job moves. A worker waits for work from now on, or goes on waiting, or rests until a limit is lifted, where no step has seen to that; whoever makes
-- work tells it. It is to look itself where there is work of which it was not told.
-- KEYS    base (also: state delays delayed prioritized groups waiting-workers resting wake open)
-- ARGV    owner, rest_ms (it rests for so long; 0 = it waits), due_ms (when the next job is due, as far as it knows; -1 = it knows of none; -2 = it has just
--         looked)
-- RETURNS 0: it waits; 1: the marker was there, and is gone: it is to look; 2: so is it, as there is work; 3: as 1, and whoever left the marker did not look for
--         those that wait, of which it is one
-- ERRORS  none      EVENTS none      COST O(1)
-- SOURCE  ours: one connection bears the waits of many workers
-- FLAGS   allow-oom
local Delayed = require('delayed')
local State = require('state')
local WaitingList = require('waiting_list')
local WaitingWorkers = require('waiting_workers')

-- Whether there is work, or some is due at another time than the worker knows.
local function is_news(base, due_ms)
  local read = redis.call('MGET', base .. 'state', base .. 'delays')
  if not read[1] then return false end
  local queue = State.open(base, nil, read[1])
  return WaitingList.has_work(queue) or (read[2] and Delayed.next_due(queue) or -1) ~= due_ms
end

return function(keys, args)
  local base = keys[1]
  local owner, rest_ms, due_ms = args[1], tonumber(args[2]), tonumber(args[3])

  if rest_ms > 0 then
    if redis.call('UNLINK', base .. 'open') == 1 then return 1 end
    WaitingWorkers.rest(base, owner, rest_ms)
    return 0
  end
  if redis.call('UNLINK', base .. 'wake') == 1 then return WaitingWorkers.remove(base, owner) and 3 or 1 end
  if due_ms > -2 and is_news(base, due_ms) then return 2 end
  WaitingWorkers.add(base, owner)
  return 0
end
