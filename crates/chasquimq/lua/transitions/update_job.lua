-- update_job: any state -> the same state. Replaces a job's data or its progress.
-- KEYS    base (also: state meta jobs vitals large active log takes frames apart:<first> runs holes completed failed delayed prioritized
--         waiting-children events trims memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, what (data | large: data that is to lie apart | progress), value (JSON text)
-- RETURNS 0 | -1
-- ERRORS  -1 missing job      EVENTS progress      COST O(log n), O(frame) for a job of a frame
-- SOURCE  BullMQ 6.7 Job#updateData, #updateProgress
local Events = require('events')
local Find = require('find')
local Large = require('large')
local Locate = require('locate')
local Memo = require('memo')
local Stored = require('stored')

-- State fields of a job, which has a record from now on; nil: there is no such job. to_store: the caller stores them.
local function fields_of(queue, id, to_store)
  -- one that has a record, as after its first update, needs nothing of what gives it one
  if redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 then return Stored.fields(redis.call('HGET', queue.base .. 'vitals', id)) end
  local job = Find.locate(queue, id)
  return job and (to_store and Locate.leave_frame or Locate.detach)(queue, job)
end

local function replace_data(queue, id, fields, value, is_large)
  local apart = fields.ld or is_large
  if apart then
    fields.ld = Large.put_data(queue, id, value)
    Locate.store_fields(queue, id, fields)
  end
  local body = Stored.body(redis.call('HGET', queue.base .. 'jobs', id))
  body[4] = apart and '' or value
  redis.call('HSET', queue.base .. 'jobs', id, cmsgpack.pack(body))
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, what, value = args[5], args[6], args[7]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local fields = fields_of(queue, id, what == 'progress')
  if not fields then return -1 end
  if what == 'progress' then
    fields.p = value
    Locate.store_fields(queue, id, fields)
    Events.emit(queue, 1, { 'X', 'progress', { id }, 'data', value })
  else
    replace_data(queue, id, fields, value, what == 'large')
  end
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
