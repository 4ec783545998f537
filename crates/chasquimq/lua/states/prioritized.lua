-- prioritized: waiting jobs that have a priority. They start when the waiting list is empty.
--   prioritized  sorted set; score: priority * 2^32 + place. Places count up from FIRST_PLACE in the order of arrival; place 0 is the
--                front of a priority; jobs given back unstarted go below the lowest place, where they were.
-- A job's priority is that of its state fields (pr), once it was changed; else the fifth value of its body; else it has none (0).
-- queue.place is the last place given; 0: no job of this queue ever had a priority. A fetch that finds the set empty begins again.
local Groups = require('groups')
local State = require('state')
local WaitingList = require('waiting_list')

local PRIORITY_STEP, FIRST_PLACE = 4294967296, 16777216
local HAS_PRIORITY = 149 -- first byte of a body with five values

-- From now on jobs that come back to the waiting list are asked for their priority.
local function expect_priorities(queue)
  queue.place = math.max(queue.place, FIRST_PLACE)
end

-- The place before those of the next `count` jobs. Places that would reach into the next priority begin again.
local function places_for(queue, count)
  expect_priorities(queue)
  if queue.place + count >= PRIORITY_STEP then queue.place = FIRST_PLACE end
  local before = queue.place
  queue.place = before + count
  return before
end

local function next_place(queue) return places_for(queue, 1) + 1 end

local function priority_of(body, fields_raw)
  local ok, fields = pcall(cmsgpack.unpack, fields_raw or '')
  local changed = ok and type(fields) == 'table' and tonumber(fields.pr)
  if changed then return changed end
  if not body or body:byte(1) ~= HAS_PRIORITY then return 0 end
  local _, values = pcall(cmsgpack.unpack, body)
  return type(values) == 'table' and tonumber(values[5]) or 0
end

-- The place before all jobs of a priority but those at its front.
local function place_below(queue, priority)
  local low = priority * PRIORITY_STEP
  local lowest = redis.call('ZRANGEBYSCORE', queue.base .. 'prioritized', low + 1, '(' .. State.whole(low + PRIORITY_STEP), 'WITHSCORES',
    'LIMIT', 0, 1)
  return lowest[2] and math.max(tonumber(lowest[2]) - low - 1, 1) or FIRST_PLACE
end

-- Puts those that have a priority among their like, and gives the others. places, by id: nil the end, 'front', 'back' (unstarted).
local function enter_priorities(queue, ids, places)
  local others, priorities, ranked = {}, {}, {}
  for from = 1, #ids, 1000 do
    local some = { unpack(ids, from, math.min(from + 999, #ids)) }
    local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(some))
    local fields = redis.call('HMGET', queue.base .. 'vitals', unpack(some))
    for i, id in ipairs(some) do
      priorities[id] = priority_of(bodies[i], fields[i])
      if priorities[id] == 0 then
        others[#others + 1] = id
      elseif places[id] ~= 'back' then
        local at = #ranked
        ranked[at + 1] = priorities[id] * PRIORITY_STEP + (places[id] == 'front' and 0 or next_place(queue))
        ranked[at + 2] = id
      end
    end
  end
  WaitingList.call_in_chunks('ZADD', queue.base .. 'prioritized', ranked)
  -- the last one first: each goes below those before
  for i = #ids, 1, -1 do
    local id = ids[i]
    if places[id] == 'back' and priorities[id] ~= 0 then
      redis.call('ZADD', queue.base .. 'prioritized', priorities[id] * PRIORITY_STEP + place_below(queue, priorities[id]), id)
    end
  end
  return others
end

-- Jobs with a record come back to the waiting list, in this order, at its end; those with a group to that (states/groups), here and below.
local function enter(queue, ids)
  local others = Groups.enter_own(queue, ids, false)
  if #others > 0 then WaitingList.append_references(queue, queue.place > 0 and enter_priorities(queue, others, {}) or others) end
end

-- Jobs with a record come back at the head of the waiting list, the first of them first; those with a priority at their place (by id).
local function enter_front(queue, ids, places)
  local others = Groups.enter_own(queue, ids, true)
  if #others > 0 then WaitingList.push_front(queue, queue.place > 0 and enter_priorities(queue, others, places) or others) end
end

-- Jobs with a record come back one after the other, each at the head of the waiting list; those with a priority at the end of it.
local function enter_latest(queue, ids)
  local own = Groups.enter_own(queue, ids, false)
  local others, last_first = queue.place > 0 and enter_priorities(queue, own, {}) or own, {}
  for i = #others, 1, -1 do last_first[#last_first + 1] = others[i] end
  WaitingList.push_front(queue, last_first)
end

return {
  PRIORITY_STEP = PRIORITY_STEP,
  FIRST_PLACE = FIRST_PLACE,
  expect_priorities = expect_priorities,
  places_for = places_for,
  next_place = next_place,
  enter = enter,
  enter_front = enter_front,
  enter_latest = enter_latest,
}
