-- read_group: no change. One group (states/groups).
-- KEYS    base (also: state groups-limited groups-maxed groups-paused group:<group> group-active group-settings group-starts:<group>)
-- ARGV    group
-- RETURNS {status (waiting | limited | maxed | paused; '' = it has no jobs, and nothing limits it), waiting jobs, active jobs, weight, concurrency, starts a
--         window, ms of a window (0 = not set for this group), ms until it is limited no more, starts in this window, ms that are left of it}
-- ERRORS  none      EVENTS none      COST O(log groups)
-- SOURCE  ours
-- FLAGS   no-writes
local Groups = require('groups')
local State = require('state')

local function status_of(queue, group, settings, limited_ms, jobs)
  if settings.p then return 'paused' end
  if limited_ms > 0 then return 'limited' end
  if redis.call('ZSCORE', queue.base .. 'groups-maxed', group) then return 'maxed' end
  return jobs > 0 and 'waiting' or ''
end

return function(keys, args)
  local base = keys[1]
  local group = args[1]

  local queue = State.open(base)

  local settings, jobs = Groups.settings_of(queue, group), redis.call('ZCARD', Groups.key_of(queue, group))
  local starts = Groups.starts_of(queue, group)
  local window_ms = math.max(redis.call('PTTL', Groups.starts_key(queue, group)), 0)
  local limited_ms = Groups.is_limited(queue, group, settings, starts) and window_ms or 0
  return { status_of(queue, group, settings, limited_ms, jobs), jobs, tonumber(redis.call('HGET', base .. 'group-active', group) or 0) or 0,
    settings.w and string.format('%.17g', settings.w) or '0', settings.c or 0, settings.m or 0, settings.d or 0, limited_ms, State.whole(math.min(starts, Groups.USED_UP)), window_ms }
end
