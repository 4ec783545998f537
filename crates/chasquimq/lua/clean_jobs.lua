-- clean_jobs: any state -> gone, for the jobs that a filter picks; a bounded step a call. Active jobs go when their worker is gone.
-- KEYS    base (also: state meta log front takes frames holes gone jobs vitals traces active delayed prioritized completed failed runs
--         events trims logged parents waiting-children lease:<owner> logs:<id> de:<id> memo:<client>:<slot> schedulers; of parents: children:<id>
--         processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>; in other queues: state meta front jobs vitals delayed delays wake)
-- ARGV    now_ms (epoch ms), client, number, state (wait | active | delayed | prioritized | completed | failed | waiting-children), filter
--         (MessagePack, lib/pick), room (most jobs to look at, over all calls), cursor (MessagePack, lib/clear; '' at first), untold
--         (jobs removed and not in a `cleaned` event yet; -1 = neither events nor ids are wanted)
-- RETURNS {ids, count, looked, cursor ('' = done), untold}
-- ERRORS  none      EVENTS cleaned, one for 10000 jobs      COST O(500 records, or 100 frames)
-- SOURCE  BullMQ 6.7 Queue#clean, #drain (differs: steps, each of which is atomic; what is added meanwhile stays)
-- FLAGS   allow-oom
local base = KEYS[1]
local now_ms, client, number, state = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4]
local filter, room, cursor, untold = cmsgpack.unpack(ARGV[5]), tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local BATCH = 10000

-- @include lib/memo
local known = recall(client, 'b', number)
if known then return known end

-- @include lib/state
-- @include lib/events
-- @include lib/line
-- @include lib/priority
-- @include lib/delayed
-- @include lib/frame
-- @include lib/keep
-- @include lib/parents
-- @include lib/pending
-- @include lib/pick
-- @include lib/clear
-- @include lib/abandoned

local function clear_active()
  for _, job in ipairs(abandoned_jobs()) do
    if G.looked == room then break end
    G.looked = G.looked + 1
    if job.started <= filter.before_ms then
      if job.first then
        local take = load_take(job.first)
        local chars = take[2] == '' and string.rep('1', job.n) or take[2]
        take[2] = replace_chars(chars, job.order - job.first, '0')
        store_take(job.first, job.n, take)
      else
        redis.call('HDEL', base .. 'active', job.id)
      end
      note_gone(job.id, not job.first, job.pa)
      S.active = S.active - 1
    end
  end
  return true
end

local function start_cursor()
  if state == 'wait' then return start_clear(redis.call('LLEN', base .. 'front')) end
  if state == 'delayed' or state == 'prioritized' then return start_clear(redis.call('ZCARD', base .. state)) end
  return { offset = 0 }
end

local C = cursor == '' and start_cursor() or cmsgpack.unpack(cursor)
local done
G.wanted = untold >= 0
if state == 'wait' then
  done = clear_line(C, filter, room)
elseif state == 'active' then
  done = clear_active()
elseif state == 'delayed' or state == 'prioritized' then
  done = clear_set(C, state, filter, room)
elseif state == 'completed' or state == 'failed' or state == 'waiting-children' then
  done = clear_scored(C, state, filter, room)
else
  done = true
end
call_in_chunks('XDEL', base .. 'log', G.entries)
if #G.records > 0 then drop_records(G.records) end
order_left(state == 'wait')
settle_removed(now_ms)
flush_visited(now_ms)

local full = G.looked >= room
if untold >= 0 then
  local told = false
  untold = untold + G.count
  while untold >= BATCH do
    emit(1, { 'E', 'cleaned', 'count', whole(BATCH) })
    untold, told = untold - BATCH, true
  end
  if (done or full) and not (untold == 0 and full and told) then emit(1, { 'E', 'cleaned', 'count', whole(untold) }) end
end
flush_events(now_ms)
local reply = { G.wanted and G.ids or {}, G.count, G.looked, (done or full) and '' or cmsgpack.pack(C), untold }
remember(client, 'b', number, reply)
return reply
