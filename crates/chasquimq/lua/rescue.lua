-- rescue: active -> front of waiting, for the jobs of workers whose lease ran out. One scan an interval for the whole queue.
-- KEYS    base (also: state meta stalled jobs vitals traces active log front takes frames events trims wake lease:<owner>)
-- ARGV    now_ms (epoch ms), interval_ms, max_stalled
-- RETURNS {id, ...} of the jobs brought back
-- ERRORS  none      EVENTS waiting, stalled      COST O(active)
-- SOURCE  BullMQ 6.7 stalled check (differs: leases are a worker's, and one scan is enough)
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, interval_ms, max_stalled = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])

if not redis.call('SET', base .. 'stalled', 1, 'PX', interval_ms, 'NX') then return {} end

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/frame
-- @include lib/held

local alive = {}
local function is_alive(owner)
  if alive[owner] == nil then alive[owner] = redis.call('EXISTS', base .. 'lease:' .. owner) == 1 end
  return alive[owner]
end

local lost, started_ms = {}, {}
local function lose(id, active, vitals)
  vitals.st = (vitals.st or 0) + 1
  vitals.as, vitals.po = active[2], active[1]
  if vitals.st > max_stalled then vitals.df = 'job stalled more than allowable limit' end
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
  S.active = S.active - 1
  lost[#lost + 1], started_ms[id] = id, active[1]
end

local takes = redis.call('HGETALL', base .. 'takes')
for i = 1, #takes, 2 do
  local first, take = held_take(takes[i], takes[i + 1])
  if not is_alive(take[3]) then
    local n, blob = held_frame(first, take)
    local body_of = frame_bodies(blob)
    local chars = take[2] == '' and string.rep('1', n) or take[2]
    for offset = 0, n - 1 do
      if chars:sub(offset + 1, offset + 1) == '1' then
        local id = whole(first + offset)
        redis.call('HSET', base .. 'jobs', id, body_of(offset))
        lose(id, { take[1], 1 }, {})
      end
    end
    take[2] = chars:gsub('1', '0')
    store_take(first, n, take)
  end
end

local records = redis.call('HGETALL', base .. 'active')
for i = 1, #records, 2 do
  local id, active = records[i], stored().active(records[i + 1])
  if not is_alive(active[3]) then
    redis.call('HDEL', base .. 'active', id)
    local raw = redis.call('HGET', base .. 'vitals', id)
    lose(id, active, stored().vitals(raw))
  end
end

if #lost == 0 then return {} end
-- in the order in which they left the line
table.sort(lost, function(a, b)
  if started_ms[a] ~= started_ms[b] then return started_ms[a] < started_ms[b] end
  if number_of(a) ~= number_of(b) then return number_of(a) < number_of(b) end
  return a < b
end)
push_front(lost)
wake()
for _, id in ipairs(lost) do
  emit_job('waiting', id, 'active')
  emit_job('stalled', id)
end
flush_events(now_ms)
return lost
