-- group_order: a group of strict order (states/groups: o) starts no job while one of its jobs is delayed that was tried before. That one comes first when it comes back.
--   group-holds:<group>  set: jobs that were delayed after a try; some have left since. A look at the group forgets those
local Groups = require('groups')

local function key_of(queue, group) return queue.base .. 'group-holds:' .. group end

-- A job that has been tried is delayed. group: its group, of its active entry.
local function hold(queue, group, id)
  if type(group) ~= 'string' or not Groups.settings_of(queue, group).o then return end
  redis.call('SADD', key_of(queue, group), id)
end

-- When the first of the jobs is due that hold a group back (epoch ms of the callers); nil: none does.
local function held_until(queue, group)
  local ids = redis.call('SMEMBERS', key_of(queue, group))
  local earliest, gone = nil, {}
  for _, id in ipairs(ids) do
    local score = redis.call('ZSCORE', queue.base .. 'delayed', id)
    if score then
      earliest = math.min(earliest or math.huge, math.floor(tonumber(score) / 4096))
    else
      gone[#gone + 1] = id
    end
  end
  if #gone > 0 then redis.call('SREM', key_of(queue, group), unpack(gone)) end
  return earliest
end

-- A delayed job of this body is about to be gone: its group need not wait for it.
local function let_go(queue, body)
  local group = Groups.are_used(queue) and Groups.group_of(body)
  if group and redis.call('EXISTS', key_of(queue, group)) == 1 then Groups.reopen(queue, group) end
end

return {
  key_of = key_of,
  hold = hold,
  held_until = held_until,
  let_go = let_go,
}
