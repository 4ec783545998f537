-- retry_job: failed | completed -> waiting | prioritized.
-- KEYS    base (also: state meta jobs vitals large active log front takes frames apart:<first> runs holes completed failed delayed prioritized
--         waiting-children events trims wake memo:<client>:<slot>; of its parent: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, state (failed | completed), front (1 = head of the waiting list), reset_made (1|0), reset_started (1|0)
-- RETURNS 0 | -1 | -3
-- ERRORS  -1 missing job, -3 not in that state      EVENTS waiting      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#retry
-- FLAGS   allow-oom
local Events = require('events')
local Find = require('find')
local Large = require('large')
local Locate = require('locate')
local Memo = require('memo')
local Parents = require('parents')
local Prioritized = require('prioritized')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, state, front, reset_made, reset_started = args[5], args[6], args[7], args[8], args[9]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local job = Find.locate(queue, id)
  if not job then return -1 end
  if job.state ~= state or (state ~= 'failed' and state ~= 'completed') then return -3 end
  local fields = Locate.detach(queue, job)
  redis.call('ZREM', base .. state, id)
  if state == 'completed' then queue.completed = queue.completed - 1 end
  Large.forget_end(queue, id, fields, state)
  if reset_made == '1' then fields.am = nil end
  if reset_started == '1' then fields.as = nil end
  if fields.pa then Parents.wait_again(queue, fields.pa, id, state) end
  Locate.store_fields(queue, id, fields)
  if front == '1' then Prioritized.enter_front(queue, { id }, {}) else Prioritized.enter(queue, { id }) end
  WaitingList.wake(queue)
  Events.emit_job(queue, 'waiting', id, state)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
