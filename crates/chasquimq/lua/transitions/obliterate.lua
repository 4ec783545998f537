-- obliterate: a paused queue -> nothing, a bounded step a call.
-- KEYS    base (also: state memo:last-event meta log front takes frames apart:<first> holes gone jobs vitals traces large active delayed delays prioritized waiting-children
--         completed failed runs events trims wake stalled gatherer logged latency metrics:completed metrics:failed
--         metrics:completed:data metrics:failed:data logs:<id> de:<id> limiter open schedulers scheduler scheduler-runs parents children:<id> processed:<id>
--         ignored:<id> faults:<id> spans:<id> returned:<id> memo:<client>:<slot> groups-measured group-latency:<group>; of parents in other queues: state meta front jobs vitals waiting-children delayed delays wake)
-- ARGV    now_ms (epoch ms), client, slot, number, count (logs or records a step), force (1 = active jobs too), cursor (of the records, then of the log; '0' at first)
-- RETURNS a cursor: call again with it | 0 done | 1 done, by a user who may not SCAN for what is remembered of calls | -1 | -2
-- ERRORS  -1 not paused, -2 active jobs      EVENTS none      COST O(count)
-- SOURCE  BullMQ 6.7 Queue#obliterate
-- FLAGS   allow-oom
local Frame = require('frame')
local Groups = require('groups')
local Memo = require('memo')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local Records = require('records')
local Schema = require('schema')
local WaitingList = require('waiting_list')

local IN_LOG = 'log:'
-- How far the place of an event may be ahead of the server's clock (queue/event_log), and as much again.
local LAST_EVENT_TTL_MS = 120000
local OF_GROUPS = { 'group:', 'group-starts:', 'group-later:', 'group-holds:', 'group-latency:' }
local OF_PARENTS = { 'children:', 'processed:', 'ignored:', 'faults:', 'spans:', 'returned:' }

-- Unlinks some keys that jobs have of their own, whose names start so; the set names the jobs. False when there are none left.
local function unlink_some(base, set, count, starts)
  local keys = {}
  for _, id in ipairs(redis.call('SPOP', base .. set, count)) do
    for _, start in ipairs(starts) do keys[#keys + 1] = base .. start .. id end
  end
  if #keys > 0 then redis.call('UNLINK', unpack(keys)) end
  return #keys > 0
end

-- Lets go of some records; gives the cursor of the next ones, which are followed by the frames of children, if there may be any.
local function release_records(queue, cursor, count)
  local page = redis.call('HSCAN', queue.base .. 'vitals', cursor, 'COUNT', count)
  local ids = {}
  for i = 1, #page[2], 2 do ids[#ids + 1] = page[2][i] end
  for from = 1, #ids, 1000 do Records.release_keys(queue, ids, from, math.min(from + 999, #ids)) end
  if page[1] ~= '0' then return page[1] end
  return (queue.flows == 1 or queue.apart > 0) and IN_LOG .. '0-0' or nil
end

-- Lets go of the children in some frames behind this log entry, and of frames that lie apart; gives the cursor of the next ones.
local function release_frames(queue, after, count)
  local entries = redis.call('XRANGE', queue.base .. 'log', '(' .. after, '+', 'COUNT', math.ceil(count / 64))
  for _, entry in ipairs(entries) do
    local first, n = entry[1]:match('^(%d+)-(%d+)$')
    local is_frame = entry[2][1] == 'f' and #n < 3
    local header = is_frame and Frame.header_of(entry[2][2])
    if is_frame and Frame.bytes_apart(queue, entry[2][2]) then redis.call('UNLINK', Frame.key_apart(queue, first)) end
    for i = 0, header and tonumber(n) - 1 or -1 do
      local pa = Frame.parent_in(header, tonumber(first), i)
      if pa then WaitingList.append(queue.call.left_parents, { queue.base, pa, Frame.id_in(header[1], first + i) }) end
    end
  end
  return #entries > 0 and IN_LOG .. entries[#entries][1] or nil
end

-- Tells the parents in other queues; those of this one are gone.
local function settle_others(queue, now_ms)
  local left = queue.call.left_parents
  queue.call.left_parents = {}
  for _, child in ipairs(left) do
    if child[2][1] ~= queue.base then Parents.remove_dependency(queue, child[1], child[2], child[3]) end
  end
  Parents.settle_parents(queue, now_ms, true)
  OtherQueues.flush_visited(queue, now_ms)
end

-- The same of groups, whose names are in several sets.
local function unlink_groups(base, count)
  for _, set in ipairs({ 'groups-measured', unpack(Groups.STATUSES) }) do
    local keys, found = {}, redis.call('ZRANGE', base .. set, 0, count - 1)
    redis.call('ZREMRANGEBYRANK', base .. set, 0, count - 1)
    for i = 1, #found do
      for _, start in ipairs(OF_GROUPS) do keys[#keys + 1] = base .. start .. found[i] end
    end
    if #keys > 0 then
      redis.call('UNLINK', unpack(keys))
      return true
    end
  end
  return false
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local count, force, cursor = math.min(tonumber(args[5]), 1000), args[6], args[7]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  if not redis.call('HGET', base .. 'meta', 'paused') then return -1 end
  local is_held = queue.active > 0 and redis.call('EXISTS', base .. 'takes', base .. 'active') > 0
  if is_held and force ~= '1' then return -2 end

  -- logs, deduplication keys and what parents know go in steps because each is a key; everything else is unlinked whole, which frees memory in the background
  if unlink_some(base, 'logged', count, { 'logs:' }) then return cursor end
  -- those whose children are told of below are parents no more
  if unlink_some(base, 'parents', count, OF_PARENTS) then return cursor end
  if queue.place > 0 and unlink_groups(base, count) then return cursor end
  local next_cursor
  if cursor:sub(1, #IN_LOG) == IN_LOG then
    next_cursor = release_frames(queue, cursor:sub(#IN_LOG + 1), count)
  else
    next_cursor = release_records(queue, cursor, count)
  end
  settle_others(queue, now_ms)
  if next_cursor then return next_cursor end
  local whole = {}
  for i, key in ipairs(Schema.names) do whole[i] = base .. key end
  redis.call('UNLINK', unpack(whole))
  redis.call('SET', base .. 'memo:last-event', struct.pack('<dd', queue.event_ms, queue.event_seq), 'PX', LAST_EVENT_TTL_MS)
  -- asked here, as a refusal would stand in the server's log
  local done = redis.acl_check_cmd('SCAN', '0') and 0 or 1
  -- sent again, this step would find a queue that is not paused; the others go on where they were
  Memo.remember(base, client, slot, number, done)
  return done
end
