-- oldest_job: no change. For how long the job has waited that could have started first of all that could start now, but for the limits and a pause of the queue.
-- KEYS    base (also: state log front jobs vitals gone delayed prioritized turns groups groups-limited group:<group>
--         group-settings group-starts:<group>)
-- ARGV    now_ms (epoch ms), group ('' = all jobs)
-- RETURNS ms; -1: no job could start
-- ERRORS  none      EVENTS none      COST O(300 records, 3000 stale references)
-- SOURCE  none: an extension
-- FLAGS   no-writes
-- Each list begins with what came first, so that its ends tell. A record's time is that from which it could be tried again, where that was noted, that of its last start and its delay
-- since, or of its creation and its delay.
local Delayed = require('delayed')
local Frame = require('frame')
local Groups = require('groups')
local Prioritized = require('prioritized')
local ReadBudget = require('read_budget')
local State = require('state')
local Stored = require('stored')

-- Priorities and groups whose first jobs are looked at. Stale references that are passed over, and what an entry of them costs in addition.
local MOST, MOST_STALE, AN_ENTRY = 100, 3000, 30

-- The delay in the options of a record's body, which stand behind its time.
local function delay_in(body)
  local ok, at = pcall(cmsgpack.unpack_one, body, 1)
  local known, _, options = pcall(cmsgpack.unpack_one, body, ok and at or 1)
  if not known or type(options) ~= 'string' or not options:find('"delay"', 1, true) then return 0 end
  local read, values = pcall(cjson.decode, options)
  return read and type(values) == 'table' and tonumber(values.delay) or 0
end

-- The earliest time at which one of these records could start; nil: there is none of them.
local function earliest(queue, ids)
  if #ids == 0 then return nil end
  local last = ReadBudget.last_fitting(queue, { 'jobs', 'vitals' }, ids, 1, 0)
  local bodies = redis.call('HMGET', queue.base .. 'jobs', unpack(ids, 1, last))
  local first
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(ids, 1, last))) do
    local fields, body = Stored.fields(raw), bodies[i]
    if body then
      local since = fields.po and math.max(fields.po + (fields.d or 0), fields.ws or 0) or Stored.timestamp(body, 1) + (fields.d or delay_in(body))
      first = math.min(first or since, since)
    end
  end
  return first
end

-- The first of these references that is not stale, as far as one may look.
local function first_valid(queue, ids, most)
  if queue.stale == 0 then return ids[1] end
  for from = 1, math.min(#ids, most), MOST do
    local some = { unpack(ids, from, math.min(from + MOST - 1, #ids)) }
    for i, count in ipairs(redis.call('HMGET', queue.base .. 'gone', unpack(some))) do
      if not count or tonumber(count) == 0 then return some[i] end
    end
  end
end

-- The same of the first entry of the log that holds a waiting job.
local function earliest_in_log(queue)
  local cursor, left = State.entry_id(queue.cursor_ms, queue.cursor_seq), queue.waiting > 0 and MOST_STALE or 0
  while left > 0 do
    local entry = redis.call('XRANGE', queue.base .. 'log', '(' .. cursor, '+', 'COUNT', 1)[1]
    if not entry then return nil end
    local blob = entry[2][2]
    if entry[2][1] == 'f' then return Stored.timestamp(blob, Frame.header_of(blob) and cmsgpack.unpack_one(blob, 0) or 0) end
    local ids = Stored.ids(blob)
    local id = first_valid(queue, ids, left)
    if id then return earliest(queue, { id }) end
    cursor, left = entry[1], left - #ids - AN_ENTRY
  end
end

-- The first record of each priority in a set.
local function first_of_priorities(set)
  local ids, low = {}, '-inf'
  for _ = 1, MOST do
    local head = redis.call('ZRANGEBYSCORE', set, low, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
    if not head[1] then break end
    ids[#ids + 1] = head[1]
    low = State.whole((math.floor(tonumber(head[2]) / Prioritized.PRIORITY_STEP) + 1) * Prioritized.PRIORITY_STEP)
  end
  return ids
end

-- Whether a group that has a turn is limited, which is noted when the turn comes.
local function is_limited(queue, group)
  return Groups.is_limited(queue, group, Groups.settings_of(queue, group), Groups.starts_of(queue, group))
end

-- The first records of groups that have turns.
local function first_of_groups(queue)
  local ids = {}
  for _, group in ipairs(Groups.are_used(queue) and redis.call('ZRANGE', queue.base .. 'groups', 0, MOST - 1) or {}) do
    if not is_limited(queue, group) then ids[#ids + 1] = redis.call('ZRANGE', Groups.key_of(queue, group), 0, 0)[1] end
  end
  return ids
end

return function(keys, args)
  local base = keys[1]
  local now_ms, group = tonumber(args[1]), args[2]

  local queue, first = State.open(base), nil
  local function note(since)
    if since then first = math.min(first or since, since) end
  end
  if group ~= '' then
    if redis.call('ZSCORE', base .. 'groups', group) and not is_limited(queue, group) then note(earliest(queue, first_of_priorities(Groups.key_of(queue, group)))) end
  else
    local front = redis.call('LRANGE', base .. 'front', 0, 0)
    front[#front + 1] = redis.call('LRANGE', base .. 'front', -1, -1)[1]
    note(earliest(queue, front))
    note(earliest_in_log(queue))
    note(earliest(queue, first_of_priorities(base .. 'prioritized')))
    note(earliest(queue, first_of_groups(queue)))
    local due_ms = Delayed.next_due(queue)
    if due_ms and due_ms <= now_ms then note(due_ms) end
  end
  return first and math.max(math.floor(now_ms - first), 0) or -1
end
