-- reclaim: active jobs that are lost go back to the front of the line, in the order in which they left it, and count a stall.
-- Of a queue: lost, their ids, and started_ms, when each was started.
local Events = require('events')
local Frame = require('frame')
local Held = require('held')
local Line = require('line')
local State = require('state')
local Stored = require('stored')

local function lose(queue, id, active, vitals, max_stalled)
  vitals.st = (vitals.st or 0) + 1
  Stored.start(vitals, active)
  if vitals.st > max_stalled then vitals.df = 'job stalled more than allowable limit' end
  redis.call('HSET', queue.base .. 'vitals', id, cmsgpack.pack(vitals))
  queue.active = queue.active - 1
  queue.lost[#queue.lost + 1], queue.started_ms[id] = id, active[1]
end

-- Of the jobs of owners for which concerns(owner) is true, all but those that are held (the claims of each id, or nil). Gives the ids of
-- the lost.
local function reclaim(queue, now_ms, max_stalled, concerns, held)
  queue.lost, queue.started_ms = {}, {}
  local takes = redis.call('HGETALL', queue.base .. 'takes')
  for i = 1, #takes, 2 do
    local first, take = Held.held_take(takes[i], takes[i + 1])
    if concerns(take[3]) then
      local n, blob = Held.held_frame(queue, first, take)
      local body_of = Frame.frame_bodies(blob)
      local brood = Frame.brood_in(take)
      local chars, before = take[2] == '' and string.rep('1', n) or take[2], #queue.lost
      for offset = 0, n - 1 do
        local id = Frame.id_in(brood and brood[1], first + offset)
        if chars:sub(offset + 1, offset + 1) == '1' and not (held and held[id] and held[id][take[5]]) then
          redis.call('HSET', queue.base .. 'jobs', id, body_of(offset))
          lose(queue, id, { take[1], 1, take[3], take[4] }, { pa = Frame.parent_in(brood, first, offset) }, max_stalled)
          chars = Frame.replace_chars(chars, offset, '0')
        end
      end
      if not held or #queue.lost > before then
        take[2] = chars
        Frame.store_take(queue, first, n, take)
      end
    end
  end

  local records = redis.call('HGETALL', queue.base .. 'active')
  for i = 1, #records, 2 do
    local id, active = records[i], Stored.active(records[i + 1])
    if concerns(active[3]) and not (held and held[id] and held[id][active[5]]) then
      redis.call('HDEL', queue.base .. 'active', id)
      local raw = redis.call('HGET', queue.base .. 'vitals', id)
      lose(queue, id, active, Stored.vitals(raw), max_stalled)
    end
  end

  if #queue.lost == 0 then return {} end
  table.sort(queue.lost, function(a, b)
    if queue.started_ms[a] ~= queue.started_ms[b] then return queue.started_ms[a] < queue.started_ms[b] end
    if State.number_of(a) ~= State.number_of(b) then return State.number_of(a) < State.number_of(b) end
    return a < b
  end)
  Line.push_front(queue, queue.lost)
  Line.wake(queue)
  for _, id in ipairs(queue.lost) do
    Events.emit_job(queue, 'waiting', id, 'active')
    Events.emit_job(queue, 'stalled', id)
  end
  Events.flush_events(queue, now_ms)
  return queue.lost
end

return {
  reclaim = reclaim,
}
