-- promote_jobs: delayed -> waiting, for the jobs that are due first, whether their time has come or not; a bounded step a call. Jobs whose time
-- has come become waiting in states/due.
-- KEYS    base (also: state meta delayed log events trims wake)
-- ARGV    now_ms (epoch ms), count (jobs)
-- RETURNS {promoted, delayed jobs left}
-- ERRORS  none      EVENTS waiting      COST O(count * log delayed)
-- SOURCE  BullMQ 6.7 Queue#promoteJobs
-- FLAGS   allow-oom
local Events = require('events')
local Groups = require('groups')
local State = require('state')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, count = tonumber(args[1]), tonumber(args[2])

  local queue = State.open(base)

  local ids = redis.call('ZRANGE', base .. 'delayed', 0, count - 1)
  if #ids == 0 then return { 0, 0 } end
  WaitingList.call_in_chunks('ZREM', base .. 'delayed', ids)
  WaitingList.append_references(queue, Groups.enter_own(queue, ids, false))
  Events.emit(queue, #ids, { 'X', 'waiting', ids, 'prev', 'delayed' })
  WaitingList.wake(queue)
  Events.flush_events(queue, now_ms)
  return { #ids, redis.call('ZCARD', base .. 'delayed') }
end
