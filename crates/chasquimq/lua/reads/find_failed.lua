-- find_failed: no change. Gives failed jobs that a filter picks, the latest first; a bounded step a call.
-- KEYS    base (also: failed jobs vitals traces)
-- ARGV    filter (MessagePack, rules/filter), offset (failed jobs looked at before), skip (picked jobs to pass over), take (jobs to give)
-- RETURNS {offset (-1 = done), skip left, jobs}; jobs as those of read_jobs
-- ERRORS  none      EVENTS none      COST O(500 jobs, or 1 MiB of them)
-- SOURCE  none: an extension
-- FLAGS   no-writes
local Filter = require('filter')
local ReadBudget = require('read_budget')
local Retention = require('retention')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local filter, offset, skip, take = cmsgpack.unpack(args[1]), tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
  local PAGE, TRACES = 500, { 'traces' }
  -- its state is not needed
  local queue = { base = base }

  local newest = filter.before_ms >= 0 and Retention.until_ms(filter.before_ms) or '+inf'
  local oldest = filter.after_ms >= 0 and State.whole(filter.after_ms) or '-inf'
  local ids = redis.call('ZREVRANGEBYSCORE', base .. 'failed', newest, oldest, 'LIMIT', offset, PAGE)
  local picked, found = Filter.pick_records(queue, filter, ids), {}
  local looked, bytes = 0, 0
  for i = 1, #picked do
    if take == 0 then break end
    looked = i
    if picked[i] then
      if skip > 0 then
        skip = skip - 1
      else
        bytes = bytes + ReadBudget.field_bytes(queue, TRACES, ids[i])
        if bytes > ReadBudget.MAX_BYTES and #found > 0 then
          looked = i - 1
          break
        end
        take = take - 1
        found[#found + 1] = ids[i]
      end
    end
  end

  local out = {}
  if #found > 0 then
    local bodies = redis.call('HMGET', base .. 'jobs', unpack(found))
    local fields = redis.call('HMGET', base .. 'vitals', unpack(found))
    local traces = redis.call('HMGET', base .. 'traces', unpack(found))
    for i, id in ipairs(found) do
      local n = #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = id, 'failed', bodies[i] or '', fields[i] or '', traces[i] or ''
    end
  end
  return { (#ids == 0 or take == 0) and -1 or offset + looked, skip, out }
end
