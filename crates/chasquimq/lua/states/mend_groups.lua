-- mend_groups: what the keys of groups (states/groups) contradict since one of them was lost. Jobs that nobody starts any more are those that wait longest: they
-- are looked at once in each stalled check (states/mend).
local Groups = require('groups')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local MOST = 100

-- Places that jobs hold which are not active.
local function mend_active(queue)
  local counted = 0
  local stored = redis.call('HGETALL', queue.base .. 'group-active')
  for i = 2, #stored, 2 do counted = counted + (tonumber(stored[i]) or 0) end
  if counted == 0 or counted <= redis.call('HLEN', queue.base .. 'active') then return end
  local by, active = {}, redis.call('HGETALL', queue.base .. 'active')
  for i = 2, #active, 2 do
    local group = Stored.active(active[i])[7]
    if type(group) == 'string' then by[group] = (by[group] or 0) + 1 end
  end
  local set, maxed = {}, redis.call('ZRANGE', queue.base .. 'groups-maxed', 0, -1)
  for group, jobs in pairs(by) do WaitingList.append(set, group, State.whole(jobs)) end
  redis.call('DEL', queue.base .. 'group-active', queue.base .. 'groups-maxed')
  WaitingList.call_in_chunks('HSET', queue.base .. 'group-active', set)
  Groups.admit(queue, maxed)
end

-- Groups that have jobs, and are in no set, or in one without a reason.
local function mend_places(queue, groups)
  local lost = {}
  for _, group in ipairs(groups) do
    local is_paused = redis.call('ZSCORE', queue.base .. 'groups-paused', group)
    local is_placed = is_paused or redis.call('ZSCORE', queue.base .. 'groups', group) or redis.call('ZSCORE', queue.base .. 'groups-limited', group)
      or redis.call('ZSCORE', queue.base .. 'groups-maxed', group)
    if is_paused and not Groups.settings_of(queue, group).p then
      redis.call('ZREM', queue.base .. 'groups-paused', group)
      is_placed = false
    end
    if not is_placed then lost[#lost + 1] = group end
  end
  Groups.admit(queue, lost)
  return #lost > 0
end

local function run(queue)
  if queue.place == 0 or redis.call('EXISTS', queue.base .. 'grouped', queue.base .. 'group-active') == 0 then return end
  Groups.expect(queue)
  mend_active(queue)
  local ids = redis.call('ZRANGE', queue.base .. 'grouped', 0, MOST - 1)
  if #ids == 0 then return end
  local groups, seen, lost = {}, {}, {}
  for i, body in ipairs(redis.call('HMGET', queue.base .. 'jobs', unpack(ids))) do
    local group = Groups.group_of(body)
    if not group then
      redis.call('ZREM', queue.base .. 'grouped', ids[i])
    elseif not redis.call('ZSCORE', Groups.key_of(queue, group), ids[i]) then
      lost[#lost + 1] = ids[i]
    elseif not seen[group] then
      seen[group], groups[#groups + 1] = true, group
    end
  end
  Groups.enter_own(queue, lost, false)
  if mend_places(queue, groups) or #lost > 0 then
    Groups.save_clock(queue)
    WaitingList.wake_for_work(queue)
  end
end

return {
  run = run,
}
