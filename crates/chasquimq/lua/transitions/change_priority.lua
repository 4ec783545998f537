-- change_priority: waiting | prioritized -> waiting | prioritized, by the job's new priority; any other state -> the same state.
-- KEYS    base (also: state meta jobs vitals active log front takes frames apart:<first> runs holes gone completed failed delayed prioritized
--         waiting-children memo:<client>:<slot>)
-- ARGV    client, slot, number, id, priority (0 = none), lifo (1 = before all others without a priority, or of this one)
-- RETURNS 0 | -1
-- ERRORS  -1 missing job      EVENTS none      COST O(log n), O(front list) for a waiting record
-- SOURCE  BullMQ 6.7 Job#changePriority
-- FLAGS   allow-oom
local Find = require('find')
local Locate = require('locate')
local Memo = require('memo')
local Prioritized = require('prioritized')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local client, slot, number, id, priority, lifo = args[1], args[2], tonumber(args[3]), args[4], tonumber(args[5]), args[6]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local job = Find.locate(queue, id)
  if not job then return -1 end
  local fields = Locate.detach(queue, job)
  fields.pr = priority
  if priority ~= 0 then Prioritized.expect_priorities(queue) end
  Locate.store_fields(queue, id, fields)
  if job.state == 'waiting' then
    Locate.leave_waiting(queue, job)
  elseif job.state == 'prioritized' then
    redis.call('ZREM', base .. 'prioritized', id)
  end
  if job.state == 'waiting' or job.state == 'prioritized' then
    if lifo == '1' then Prioritized.enter_front(queue, { id }, { [id] = 'front' }) else Prioritized.enter(queue, { id }) end
  end
  State.save_state(queue)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
