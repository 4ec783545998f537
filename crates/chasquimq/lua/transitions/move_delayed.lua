-- move_delayed: delayed -> waiting | prioritized (promote), or delayed -> delayed with another due time.
-- KEYS    base (also: state meta jobs vitals active log takes runs holes completed failed delayed delays prioritized waiting-children
--         events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, due_ms (0 = promote)
-- RETURNS 0 | -1 | -3
-- ERRORS  -1 missing job, -3 not delayed      EVENTS waiting, delayed      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#promote, #changeDelay
-- FLAGS   allow-oom
local Delayed = require('delayed')
local Events = require('events')
local Find = require('find')
local Memo = require('memo')
local Prioritized = require('prioritized')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, due_ms = args[5], tonumber(args[6])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  if not Find.locate(queue, id) then return -1 end
  if redis.call('ZREM', base .. 'delayed', id) == 0 then return -3 end
  if due_ms == 0 then
    Prioritized.enter(queue, { id })
    Events.emit_job(queue, 'waiting', id, 'delayed')
  else
    local fields = Stored.fields(redis.call('HGET', base .. 'vitals', id))
    fields.d = due_ms - now_ms
    redis.call('HSET', base .. 'vitals', id, cmsgpack.pack(fields))
    Delayed.delay_jobs(queue, { id }, { due_ms })
    Events.emit_job(queue, 'delayed', id, nil, 'delay', State.whole(due_ms))
  end
  WaitingList.wake(queue)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
