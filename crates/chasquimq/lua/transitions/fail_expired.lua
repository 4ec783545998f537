-- fail_expired: waiting | prioritized | delayed | waiting-children -> failed, for jobs that were to start by now (rules/expiry), those that were to start first
-- before the others; a bounded step a call.
-- KEYS    base (also: state meta log front takes frames apart:<first> runs holes gone jobs vitals traces large active delayed prioritized completed failed grouped
--         groups group:<group> group-holds:<group> waiting-children expiring schedulers events trims wake logged parents logs:<id> de:<id> memo:<client>:<slot>; of
--         parents, which may lie in other queues: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    now_ms (epoch ms), client, slot, number, keep (MessagePack: the rule of jobs that say nothing themselves, step/finish)
-- RETURNS 1 others may be left | 0
-- ERRORS  none      EVENTS failed, waiting      COST O(100 jobs), or fewer where the front list is long
-- SOURCE  none: an extension
-- FLAGS   allow-oom
local Events = require('events')
local Expiry = require('expiry')
local FailUnstarted = require('fail_unstarted')
local Find = require('find')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local PendingIteration = require('pending_iteration')
local Stored = require('stored')

-- Jobs of a call, and elements of the front list that they are looked for in, one by one.
local MOST, MOST_LOOKS = 100, 100000

local STATES = { waiting = true, prioritized = true, delayed = true, ['waiting-children'] = true }

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, keep = tonumber(args[1]), args[2], args[3], tonumber(args[4]), cmsgpack.unpack(args[5])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local most = math.max(math.min(MOST, math.floor(MOST_LOOKS / (redis.call('LLEN', base .. 'front') + 1))), 1)
  local ids, jobs = Expiry.due_jobs(queue, most), {}
  if #ids == 0 then return 0 end
  redis.call('ZREM', base .. 'expiring', unpack(ids))
  for _, id in ipairs(ids) do
    local fields = Stored.fields(redis.call('HGET', base .. 'vitals', id))
    local job = Expiry.is_due(queue, fields) and not PendingIteration.is_pending_iteration(queue, id) and Find.locate(queue, id) or nil
    if job and job.record and STATES[job.state] then
      -- it was not met in its place
      job.fields, job.is_unsure = fields, true
      jobs[#jobs + 1] = job
    end
  end
  if #jobs > 0 then FailUnstarted.fail(queue, jobs, Expiry.REASON, keep, now_ms) end
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  local reply = #ids == most and 1 or 0
  Memo.remember(base, client, slot, number, reply)
  return reply
end
