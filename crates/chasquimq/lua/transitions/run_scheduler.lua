-- run_scheduler: a job of a scheduler, now; also of one that is paused. When the scheduler runs next does not change.
-- KEYS    base (also: state meta log front jobs vitals prioritized grouped groups group:<group> schedulers scheduler events trims wake memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, job (MessagePack: options, id_text, priority, lifo 1|0, group or nil, terms or nil; rules/schedulers)
-- RETURNS noughts in front of now_ms in the job's id (rules/schedulers) | 0 there is no such scheduler
-- ERRORS  none      EVENTS added, waiting      COST O(log n)
-- SOURCE  not in BullMQ
local Events = require('events')
local Memo = require('memo')
local Schedulers = require('schedulers')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local job = cmsgpack.unpack(args[6])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local raw = redis.call('HGET', base .. 'scheduler', id)
  local count, fields = nil, nil
  if raw then count, fields = Schedulers.read_scheduler(raw) end
  if not count then return 0 end
  local noughts, job_id = 0, nil
  repeat
    noughts = noughts + 1
    job_id = 'repeat:' .. id .. ':' .. string.rep('0', noughts) .. State.whole(now_ms)
  until redis.call('HEXISTS', base .. 'jobs', job_id) == 0
  Schedulers.add_iterations(queue, { { id = job_id, slot = now_ms, name = fields[1], data = fields[2], every_ms = fields[5], options = job[1],
    id_text = job[2] .. string.rep('0', noughts), priority = job[3], lifo = job[4] == 1, group = job[5], terms = job[6] } }, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, noughts)
  return noughts
end
