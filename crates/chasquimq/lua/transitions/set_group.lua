-- set_group: what is set for one group (states/groups), by hand. No job moves.
-- KEYS    base (also: state turns groups groups-limited groups-maxed groups-paused grouped group:<group> group-settings group-starts:<group> group-held group-holds:<group> group-latency:<group>
--         groups-measured events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, group, what (pause | resume | concurrency | limit | weight | window | forget), value (active jobs |
--         starts a window | weight | ms without a start; '' = lift), duration_ms (of a limit)
-- RETURNS 1 | 0 (nothing changed)
-- ERRORS  none      EVENTS group-paused, group-resumed      COST O(log groups)
-- SOURCE  ours
-- FLAGS   allow-oom
local Events = require('events')
local GroupOrder = require('group_order')
local Groups = require('groups')
local Latency = require('latency')
local Memo = require('memo')
local State = require('state')
local WaitingList = require('waiting_list')

-- The group takes the place that it has by its settings; whether it is full, or limited, is seen when it is its turn.
local function replace(queue, group)
  Groups.retire(queue, { group })
  if redis.call('EXISTS', Groups.key_of(queue, group)) == 1 then Groups.admit(queue, { group }) end
end

local SETTERS = {}

function SETTERS.pause(queue, group, settings)
  if settings.p then return false end
  settings.p = 1
  Groups.store_settings(queue, group, settings)
  replace(queue, group)
  Events.emit(queue, 1, { 'E', 'group-paused', 'groupId', group })
  return true
end

function SETTERS.resume(queue, group, settings)
  if not settings.p then return false end
  settings.p = nil
  Groups.store_settings(queue, group, settings)
  replace(queue, group)
  Events.emit(queue, 1, { 'E', 'group-resumed', 'groupId', group })
  return true
end

-- No job of the group starts for so long; 0 = the limit is lifted.
function SETTERS.window(queue, group, settings, value)
  if tonumber(value) > 0 then
    redis.call('SET', Groups.starts_key(queue, group), State.whole(Groups.USED_UP), 'PX', value)
    local held = queue.base .. 'group-held'
    if redis.call('PTTL', held) < tonumber(value) then redis.call('SET', held, 1, 'PX', value) end
  else
    redis.call('DEL', Groups.starts_key(queue, group))
  end
  if not settings.p then replace(queue, group) end
  return true
end

-- One of the settings that say how many jobs start.
local function set(queue, group, settings, values)
  local changed = false
  for name, value in pairs(values) do
    local number = tonumber(value)
    changed = changed or settings[name] ~= number
    settings[name] = number
  end
  Groups.store_settings(queue, group, settings)
  if changed and not settings.p then replace(queue, group) end
  return changed
end

function SETTERS.concurrency(queue, group, settings, value) return set(queue, group, settings, { c = value }) end

function SETTERS.weight(queue, group, settings, value) return set(queue, group, settings, { w = value }) end

function SETTERS.limit(queue, group, settings, value, duration_ms) return set(queue, group, settings, { m = value, d = duration_ms }) end

-- What was set for the group is gone, and what was measured, and what it has started is not counted any more.
function SETTERS.forget(queue, group, settings)
  local had = next(settings) ~= nil
  redis.call('HDEL', queue.base .. 'group-settings', group)
  redis.call('DEL', Groups.starts_key(queue, group), GroupOrder.key_of(queue, group))
  Latency.forget_group(queue.base, group)
  replace(queue, group)
  return had
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local group, what, value, duration_ms = args[5], args[6], args[7], args[8]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  -- jobs that come are asked for their group
  Groups.expect(queue)
  State.save_state(queue)
  local changed = SETTERS[what](queue, group, Groups.settings_of(queue, group), value, duration_ms)
  if changed then WaitingList.wake_for_work(queue) end
  Events.flush_events(queue, now_ms)
  local reply = changed and 1 or 0
  Memo.remember(base, client, slot, number, reply)
  return reply
end
