-- settle_adopted: tells parents that were moved what became of the children that BullMQ's workers ended since; they start when that was the
-- last. Twice is as once.
-- KEYS    base (also, and of the queues of children and of their parents: state meta jobs vitals active log front takes holes runs
--         prioritized delayed delays completed failed waiting-children children:<id> spans:<id> processed:<id> ignored:<id> faults:<id>
--         returned:<id> events trims wake; of BullMQ: moved-parents and more, migrate/bull)
-- ARGV    now_ms (epoch ms), source (migrate/bull), cursor ('0' at first), sources (MessagePack array: of all queues that are moved)
-- RETURNS {cursor ('0' = done), children told of, children that are still BullMQ's}
-- ERRORS  none      EVENTS waiting, delayed      COST O(parents of a page and their children)
-- SOURCE  none: moving from BullMQ
local AclCheck = require('acl_check')
local Bull = require('bull')
local Events = require('events')
local Find = require('find')
local Names = require('names')
local OtherQueues = require('other_queues')
local Parents = require('parents')
local State = require('state')
local Stored = require('stored')
local WaitingList = require('waiting_list')

local PAGE = 20

-- A child by its key, where it is ours: its state fields; nil where it is not.
local function own_fields(settling, key)
  local of, id = Bull.split_key(key, settling.source, settling.sources)
  if not of then return nil end
  return OtherQueues.in_queue(settling.queue, Names.base_of(of:sub(1, -2)), function(queue)
    if not Find.locate(queue, id) then return nil end
    return Stored.fields(redis.call('HGET', queue.base .. 'vitals', id))
  end)
end

-- Whether a child that failed starts its parent at once.
local function starts_parent(settling, key)
  local raw = redis.pcall('HGET', key, 'parent')
  if type(raw) == 'string' then return (Bull.parent_of(raw) or {})[3] == 'c' end
  local fields = own_fields(settling, key)
  return fields ~= nil and fields.pa ~= nil and fields.pa[3] == 'c'
end

-- Tells of what BullMQ noted beside a parent.
local function note(settling, of, list, key, found)
  if found.err then return end
  settling.read[#settling.read + 1] = key
  for i = 1, #found, 2 do
    WaitingList.append(of.keys, found[i])
    WaitingList.append(of[list], found[i], found[i + 1])
    if list == 'ignored' and starts_parent(settling, found[i]) then of.starts = true end
    settling.told = settling.told + 1
  end
end

-- Whether a child of ours is still waited for: unlike one that failed as BullMQ's, of which its parent is to know nothing.
local function is_awaited(settling, key)
  local fields = own_fields(settling, key)
  return fields ~= nil and not (fields.fo and fields.pa and fields.pa[3] == 'r')
end

-- Children that went without a word: removed, or failed with the parent's leave. None of BullMQ's is left.
local function note_stale(settling, of, id)
  local known = {}
  for _, key in ipairs(of.keys) do known[key] = true end
  for _, key in ipairs(redis.call('SMEMBERS', settling.queue.base .. 'children:' .. id)) do
    if not known[key] and not is_awaited(settling, key) then
      WaitingList.append(of.keys, key)
      settling.told = settling.told + 1
    end
  end
end

local function settle(settling, id)
  local key, of = settling.source .. id, Parents.news_of(settling.queue, { settling.queue.base, id })
  local function note_all(list, beside, command, ...)
    note(settling, of, list, key .. beside, redis.pcall(command, key .. beside, ...))
  end
  note_all('processed', ':processed', 'HGETALL')
  note_all('ignored', ':failed', 'HGETALL')
  note_all('faults', ':unsuccessful', 'ZRANGE', 0, -1, 'WITHSCORES')
  local pending = redis.pcall('SCARD', key .. ':dependencies')
  if type(pending) == 'number' and pending > 0 then
    settling.open = settling.open + pending
    return
  end
  note_stale(settling, of, id)
  settling.settled[#settling.settled + 1] = id
end

return function(keys, args)
  local base = keys[1]
  local now_ms, source, cursor, sources = tonumber(args[1]), args[2], args[3], Bull.read_texts(args[4])

  AclCheck.require_commands({ base = source }, { 'SREM' })
  AclCheck.require_each({ 'UNLINK' }, source .. 'log')
  Bull.require_types(source)
  local queue = State.open(base)
  -- read: keys of BullMQ's, which go when the parents were told of what is in them; settled: parents of whose children none is BullMQ's
  local settling = { queue = queue, source = source, sources = sources, told = 0, open = 0, read = {}, settled = {} }
  local page = redis.call('SSCAN', source .. 'moved-parents', cursor, 'COUNT', PAGE)
  for _, id in ipairs(page[2]) do settle(settling, id) end
  Parents.settle_parents(queue, now_ms)
  if #settling.read > 0 then redis.call('UNLINK', unpack(settling.read)) end
  if #settling.settled > 0 then redis.call('SREM', source .. 'moved-parents', unpack(settling.settled)) end
  OtherQueues.flush_visited(queue, now_ms)
  Events.flush_events(queue, now_ms)
  return { page[1], settling.told, settling.open }
end
