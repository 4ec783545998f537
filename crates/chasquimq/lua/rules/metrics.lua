-- metrics: finished jobs a minute, for workers that ask for it.
--   metrics:<state>       {count, prevTS, prevCount}: jobs so far; time of the last new minute, and jobs before it
--   metrics:<state>:data  jobs of each minute, the newest first
-- A minute's jobs are known when the first job of a later minute has ended. Minutes without jobs are filled in
-- then, two weeks of them at most.
local State = require('state')
local WaitingList = require('waiting_list')

local function count_minutes(queue, state, ended, now_ms, points)
  local key = queue.base .. 'metrics:' .. state
  local before = redis.call('HINCRBY', key, 'count', ended) - ended
  local known = redis.call('HMGET', key, 'prevTS', 'prevCount')
  if not known[1] then
    redis.call('HSET', key, 'prevTS', State.whole(now_ms), 'prevCount', 0)
    return
  end
  local minutes = math.floor(now_ms / 60000) - math.floor(tonumber(known[1]) / 60000)
  if minutes <= 0 then return end
  redis.call('HSET', key, 'prevTS', State.whole(now_ms), 'prevCount', State.whole(before))
  redis.call('LPUSH', key .. ':data', State.whole(before - tonumber(known[2] or 0)))
  local idle = {}
  for i = 1, math.min(minutes, points, 20160) - 1 do idle[i] = 0 end
  WaitingList.call_in_chunks('LPUSH', key .. ':data', idle)
  redis.call('LTRIM', key .. ':data', 0, points - 1)
end

return {
  count_minutes = count_minutes,
}
