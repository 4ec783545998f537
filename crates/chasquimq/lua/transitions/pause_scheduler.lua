-- pause_scheduler: a scheduler makes no iterations until it is resumed. The one that stands to start is taken back, and its options are held; one that
-- runs goes on.
-- KEYS    base (also: state meta log front jobs vitals traces active logged parents large frames apart:<first> runs holes gone prioritized grouped groups
--         group:<group> delayed completed failed waiting-children schedulers scheduler events trims logs:<id> de:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id
-- RETURNS 1 it is paused | 0 there is none
-- ERRORS  none      EVENTS removed      COST O(log n), O(front list) for an iteration that waits
-- SOURCE  not in BullMQ
-- FLAGS   allow-oom
local Events = require('events')
local Memo = require('memo')
local Schedulers = require('schedulers')
local Stored = require('stored')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, id = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local latest, raw = redis.call('ZSCORE', base .. 'schedulers', id), redis.call('HGET', base .. 'scheduler', id)
  local count, fields = nil, nil
  if latest and raw then count, fields = Schedulers.read_scheduler(raw) end
  if not count then return 0 end
  if not fields[Schedulers.HELD] then
    local found = Schedulers.pending_at(queue, id, tonumber(latest))
    fields[Schedulers.CLOCK] = fields[Schedulers.CLOCK] or false
    fields[Schedulers.HELD] = found and Stored.body(found.body)[2] or ''
    redis.call('HSET', base .. 'scheduler', id, Schedulers.pack_scheduler(count, fields))
    if found then
      Schedulers.take_out(queue, found)
      Events.emit_job(queue, 'removed', found.id, found.state)
      Events.flush_events(queue, now_ms)
    end
  end
  Memo.remember(base, client, slot, number, 1)
  return 1
end
