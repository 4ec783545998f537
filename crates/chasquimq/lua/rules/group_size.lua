-- group_size: how many jobs wait in a group, and how heavy the group is, as far as adds say so. An add names a group as a text, or as {group, most jobs,
-- weight, order (1 strict, 2 not)}, of which 0 says nothing. Jobs count that wait in the group, and delayed ones that were added with a maximum.
--   group-later:<group>  set: delayed jobs that were added with a maximum; some of them have left since. It expires when all are due
-- Why a set that is not kept up to date: whatever takes a delayed job away need not know its group. It is looked through only when a group seems to be full.
local Groups = require('groups')
local State = require('state')
local WaitingList = require('waiting_list')

-- Who looks for due jobs may come late.
local LATE_MS = 60000

local function later_key(queue, group) return queue.base .. 'group-later:' .. group end

local function name_of(group)
  return type(group) == 'table' and group[1] or group
end

-- The names of groups, one a job.
local function names_of(groups)
  local names = {}
  for i, group in ipairs(groups) do names[i] = name_of(group) end
  return names
end

-- Those of the group's delayed jobs that are delayed still; the others are forgotten.
local function count_later(queue, group)
  local key, left = later_key(queue, group), {}
  local ids = redis.call('SMEMBERS', key)
  for from = 1, #ids, 1000 do
    local some = { unpack(ids, from, math.min(from + 999, #ids)) }
    for i, due in ipairs(redis.call('ZMSCORE', queue.base .. 'delayed', unpack(some))) do
      if not due then left[#left + 1] = some[i] end
    end
  end
  WaitingList.call_in_chunks('SREM', key, left)
  return #ids - #left
end

-- The answer to an add of which a job finds its group full: {-13, group, jobs in it, most jobs}; nil when all have room. groups: as the add names them.
local function refuse_beyond(queue, groups)
  local coming = {}
  for _, group in ipairs(groups) do
    local name, most = name_of(group), type(group) == 'table' and group[2] or 0
    coming[name] = (coming[name] or 0) + 1
    if most > 0 then
      local waiting = redis.call('ZCARD', Groups.key_of(queue, name))
      local is_full = waiting + redis.call('SCARD', later_key(queue, name)) + coming[name] > most
      local size = is_full and waiting + count_later(queue, name) or 0
      if size + coming[name] > most then return { -13, name, size, most } end
    end
  end
end

-- Jobs are added: what is said of their groups is noted. dues: of delayed ones, or 0.
local function note(queue, ids, groups, dues)
  local now_ms = dues ~= 0 and Groups.server_ms()
  for i, group in ipairs(groups) do
    if type(group) == 'table' then
      local name, most, weight, order = unpack(group)
      if weight > 0 or order > 0 then
        local settings = Groups.settings_of(queue, name)
        local w, o = weight > 0 and weight or settings.w, settings.o
        if order > 0 then o = order == 1 and 1 or nil end
        if settings.w ~= w or settings.o ~= o then
          settings.w, settings.o = w, o
          Groups.store_settings(queue, name, settings)
        end
      end
      if most > 0 and dues ~= 0 then
        local key = later_key(queue, name)
        local lasts_ms = math.max(dues[i] - now_ms, 0) + LATE_MS
        if redis.call('SADD', key, ids[i]) == 1 and redis.call('PTTL', key) < lasts_ms then redis.call('PEXPIRE', key, State.whole(lasts_ms)) end
      end
    end
  end
end

return {
  names_of = names_of,
  refuse_beyond = refuse_beyond,
  note = note,
}
