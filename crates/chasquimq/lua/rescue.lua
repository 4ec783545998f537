-- rescue: active -> front of waiting, for the jobs of workers whose lease ran out. One scan an interval for the whole queue.
-- KEYS    base (also: state meta stalled jobs vitals traces active log front takes frames events trims wake lease:<owner>)
-- ARGV    now_ms (epoch ms), interval_ms, max_stalled
-- RETURNS {id, ...} of the jobs brought back
-- ERRORS  none      EVENTS waiting, stalled      COST O(active)
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, and one scan is enough)
-- FLAGS   allow-oom
local Reclaim = require('reclaim')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, interval_ms, max_stalled = tonumber(args[1]), args[2], tonumber(args[3])

  -- somewhat less than an interval: the scan that a worker makes one interval after its last must not come too early for it
  if not redis.call('SET', base .. 'stalled', 1, 'PX', math.max(math.floor(0.75 * interval_ms), 1), 'NX') then return {} end

  local queue = State.open(base)

  local alive = {}
  local function is_alive(owner)
    if alive[owner] == nil then alive[owner] = redis.call('EXISTS', base .. 'lease:' .. owner) == 1 end
    return alive[owner]
  end

  return Reclaim.reclaim(queue, now_ms, max_stalled, function(owner) return not is_alive(owner) end)
end
