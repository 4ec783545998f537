-- cancel_jobs: jobs that are named, whatever they do: what does not run -> failed, or gone; of what runs its worker is told (lists/cancel).
-- KEYS    base (also, and of the queues of children and of parents: state meta jobs vitals traces large active log front takes frames apart:<first> runs
--         holes gone completed failed delayed delays prioritized waiting-children grouped group:<group> events trims wake logged parents
--         lease:<owner> cancels:<owner> logs:<id> de:<id> children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>
--         schedulers; of this queue: memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, reason ('' = none), removes (1: what does not run is gone), jobs (MessagePack array, three values
--         a job: its id, '', ''; or of a child the base of its parent's queue, the parent's id, the child's key)
-- RETURNS {0 missing | 1 cancelled | 2 its worker is told | 3 it has ended | -8, ...}: of the first of the jobs; the others are to be named again
-- ERRORS  -8 the next job of a scheduler      EVENTS failed, removed, waiting      COST O(log n) a job, O(front list) for a waiting record
-- SOURCE  none: an extension
-- FLAGS   allow-oom
local Cancel = require('cancel')
local Events = require('events')
local Find = require('find')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Remove = require('remove')

-- Elements of front lists that jobs are looked for in, one by one.
local MOST_LOOKS = 100000
local MISSING, CANCELLED, SIGNALLED, ENDED, OF_SCHEDULER = 0, 1, 2, 3, -8

local function cancel(queue, job, reason, removes, now_ms)
  if job.state == 'completed' or job.state == 'failed' then return ENDED end
  -- it was not met in its place
  job.is_unsure = job.record
  local has_gone = #Cancel.cancel(queue, job.state, { job }, reason, removes, now_ms) > 0
  if job.state == 'active' then return SIGNALLED end
  return has_gone and CANCELLED or OF_SCHEDULER
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local reason, removes, jobs = args[5], args[6] == '1', cmsgpack.unpack(args[7])

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local codes, looks = {}, 0
  for i = 1, #jobs, 3 do
    if looks > MOST_LOOKS then break end
    local of, job = base, jobs[i + 2] == '' and Find.locate(queue, jobs[i])
    if jobs[i + 2] ~= '' then
      local found, _, child = Remove.find_child(queue, jobs[i + 2], jobs[i], jobs[i + 1])
      of, job = found, child
    end
    if job and job.record and job.state == 'waiting' then looks = looks + redis.call('LLEN', of .. 'front') end
    codes[#codes + 1] = job and OtherQueues.in_queue(queue, of, function(queue) return cancel(queue, job, reason, removes, now_ms) end) or MISSING
  end
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, codes)
  return codes
end
