-- log_job: any state -> the same state. Adds rows to the logs of jobs, once however often it is sent.
-- KEYS    base (also: state jobs vitals active log takes frames apart:<first> runs holes completed failed delayed prioritized
--         waiting-children logged logs:<id> memo:<client>:<slot>)
-- ARGV    client, slot, number, then id, row, keep (newest rows kept; 0 = all, below 0 as many of the oldest go), ... three a row
-- RETURNS {rows of that job now stored | keep below 0 | -1, ...}, one a row
-- ERRORS  -1 missing job      EVENTS none      COST O(rows), O(log n + frame) for a job of a frame
-- SOURCE  BullMQ 6.7 Job#log
local Find = require('find')
local Locate = require('locate')
local Memo = require('memo')
local State = require('state')

return function(keys, args)
  local base = keys[1]
  local client, slot, number = args[1], args[2], tonumber(args[3])
  local FIRST_ROW = 4

  local raw, known = Memo.read_beside(base, Memo.key_of(base, client, slot), number)
  if known then return cmsgpack.unpack(known) end

  -- jobs that have a record, as after their first row, need nothing of what gives them one
  local seen, bare, gone = {}, {}, {}
  for at = FIRST_ROW, #args, 3 do
    local id = args[at]
    if not seen[id] then
      seen[id] = true
      if redis.call('HEXISTS', base .. 'jobs', id) == 0 then bare[#bare + 1] = id end
    end
  end
  if #bare > 0 then
    local queue = State.open(base, nil, raw)
    for _, id in ipairs(bare) do
      local job = Find.locate(queue, id)
      if job then Locate.detach(queue, job) else gone[id] = true end
    end
    if #bare > 1 or not gone[bare[1]] then State.save_state(queue) end
  end

  local counts = {}

  -- Rows that follow each other in one log. Each is answered as if it came alone.
  local function add_rows(id, rows, keep)
    local stored_rows = redis.call('RPUSH', base .. 'logs:' .. id, unpack(rows))
    local before = stored_rows - #rows
    if before == 0 then redis.call('SADD', base .. 'logged', id) end
    local kept = keep > 0 and math.min(stored_rows, keep) or stored_rows
    if keep < 0 then
      kept = before
      for _ = 1, #rows do kept = math.max(kept + 1 + keep, 0) end
    end
    if kept < stored_rows then redis.call('LTRIM', base .. 'logs:' .. id, stored_rows - kept, -1) end
    for i = 1, #rows do counts[#counts + 1] = keep == 0 and before + i or math.min(before + i, keep) end
  end

  local at = FIRST_ROW
  while at <= #args do
    local id, keep = args[at], args[at + 2]
    if gone[id] then
      counts[#counts + 1] = -1
      at = at + 3
    else
      local rows = {}
      while args[at] == id and args[at + 2] == keep do
        rows[#rows + 1] = args[at + 1]
        at = at + 3
      end
      add_rows(id, rows, tonumber(keep))
    end
  end
  Memo.remember(base, client, slot, number, counts)
  return counts
end
