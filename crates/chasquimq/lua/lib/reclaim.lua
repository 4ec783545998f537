-- reclaim: active jobs that are lost go back to the front of the line, in the order in which they left it, and count a stall.
-- Of lib/state, lib/events, lib/line, lib/frame, lib/held.
local lost, started_ms = {}, {}

local function lose(id, active, vitals, max_stalled)
  vitals.st = (vitals.st or 0) + 1
  stored().start(vitals, active)
  if vitals.st > max_stalled then vitals.df = 'job stalled more than allowable limit' end
  redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(vitals))
  S.active = S.active - 1
  lost[#lost + 1], started_ms[id] = id, active[1]
end

-- Of the jobs of owners for which concerns(owner) is true, all but those that are held (the claims of each id, or nil). Gives the ids of
-- the lost.
local function reclaim(now_ms, max_stalled, concerns, held)
  local takes = redis.call('HGETALL', base .. 'takes')
  for i = 1, #takes, 2 do
    local first, take = held_take(takes[i], takes[i + 1])
    if concerns(take[3]) then
      local n, blob = held_frame(first, take)
      local body_of = frame_bodies(blob)
      local brood = brood_in(take)
      local chars, before = take[2] == '' and string.rep('1', n) or take[2], #lost
      for offset = 0, n - 1 do
        local id = id_in(brood and brood[1], first + offset)
        if chars:sub(offset + 1, offset + 1) == '1' and not (held and held[id] and held[id][take[5]]) then
          redis.call('HSET', base .. 'jobs', id, body_of(offset))
          lose(id, { take[1], 1, take[3], take[4] }, { pa = parent_in(brood, first, offset) }, max_stalled)
          chars = replace_chars(chars, offset, '0')
        end
      end
      if not held or #lost > before then
        take[2] = chars
        store_take(first, n, take)
      end
    end
  end

  local records = redis.call('HGETALL', base .. 'active')
  for i = 1, #records, 2 do
    local id, active = records[i], stored().active(records[i + 1])
    if concerns(active[3]) and not (held and held[id] and held[id][active[5]]) then
      redis.call('HDEL', base .. 'active', id)
      local raw = redis.call('HGET', base .. 'vitals', id)
      lose(id, active, stored().vitals(raw), max_stalled)
    end
  end

  if #lost == 0 then return {} end
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
end
