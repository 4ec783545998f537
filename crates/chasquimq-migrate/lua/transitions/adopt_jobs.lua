-- adopt_jobs: a job of BullMQ's, in any state but active -> the same state here. Moves the next jobs of one of BullMQ's lists or sets, each in
-- one step: it is there before the call, and here after it.
-- KEYS    base (also: state log front jobs vitals traces large prioritized delayed delays completed failed waiting-children logged logs:<id>
--         parents children:<id> processed:<id> ignored:<id> faults:<id> de:<id> schedulers scheduler takes holes runs events trims wake
--         memo:<client>:<slot>; of BullMQ: wait paused active repeat and more, migrate/bull)
-- ARGV    now_ms (epoch ms), client, slot, number, source (migrate/bull), place (BullMQ's list or set), skip (jobs that the caller knows to
--         stay), most (jobs), sources (MessagePack array: of all queues that are moved), tries (1: moves nothing, and tells all the same)
-- RETURNS {jobs looked at (0 = no more), jobs moved, schedulers moved, {id, why it stays, ...}, jobs that stay}
--         why: missing, marker, unreadable, exists, parent, scheduler, next, nth
-- ERRORS  none      EVENTS none      COST O(most * log n), or 1 MiB
-- SOURCE  none: moving from BullMQ
local AclCheck = require('acl_check')
local Adopt = require('adopt')
local Bull = require('bull')
local Events = require('events')
local Memo = require('memo')
local State = require('state')

local MAX_BYTES = 1048576
local PLACES = { 'wait', 'paused', 'prioritized', 'delayed', 'waiting-children', 'completed', 'failed' }

local function is_list(place) return place == 'wait' or place == 'paused' end

-- Ends the call, which has written nothing yet, where it could not be carried out as a whole.
local function require_all(queue, source)
  local base = queue.base
  AclCheck.require_commands(queue, { 'SET', 'XADD', 'ZADD', 'HSET', 'SADD', 'RPUSH' })
  AclCheck.require_commands({ base = source }, { 'LTRIM', 'LREM', 'ZREM', 'SREM', 'SADD' })
  AclCheck.require_each({ 'UNLINK', 'DEL' }, source .. 'log')
  AclCheck.require_each({ 'RENAME', 'SUNIONSTORE' }, source .. 'log', base .. 'log')
  State.check_types(queue)
  Bull.require_types(source)
end

-- The next ids of a list or set, and their scores.
local function next_ids(from, place, skip, most)
  local ids, scores = {}, {}
  if is_list(place) then
    local found = redis.call('LRANGE', from, -(skip + most), -(skip + 1))
    for i = #found, 1, -1 do ids[#ids + 1] = found[i] end
  else
    local found = redis.call('ZRANGE', from, skip, skip + most - 1, 'WITHSCORES')
    for i = 1, #found, 2 do ids[#ids + 1], scores[#scores + 1] = found[i], found[i + 1] end
  end
  return ids, scores
end

-- Notes the jobs that come. Gives how many were looked at, and {id, why, ...} of those that stay.
local function look_at(queue, place, ids, scores)
  local stays, looked, seen = {}, 0, {}
  for i, id in ipairs(ids) do
    if queue.adoption.bytes > MAX_BYTES then break end
    looked = i
    -- a list may name a job twice
    local why = seen[id] and 'missing' or Adopt.consider(queue, id, place, scores[i])
    seen[id] = true
    if why then
      stays[#stays + 1] = id
      stays[#stays + 1] = why
    end
  end
  return looked, stays
end

-- Takes the jobs that were moved out of where they were found. heads: jobs at the end of the list, all of which were moved; 0 where others
-- stand among them.
local function leave(queue, from, place, heads)
  local moved = {}
  for _, job in ipairs(queue.adoption.jobs) do moved[#moved + 1] = job.id end
  if not is_list(place) then
    for at = 1, #moved, 1000 do redis.call('ZREM', from, unpack(moved, at, math.min(at + 999, #moved))) end
  elseif heads > 0 then
    redis.call('LTRIM', from, 0, -(heads + 1))
  else
    for _, id in ipairs(moved) do redis.call('LREM', from, -1, id) end
  end
end

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number, source = tonumber(args[1]), args[2], args[3], tonumber(args[4]), args[5]
  local place, skip, most, sources, tries = args[6], tonumber(args[7]), tonumber(args[8]), Bull.read_texts(args[9]), args[10] == '1'

  Bull.require_word(PLACES, place)
  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  require_all(queue, source)
  queue.is_safe = true
  Adopt.start(queue, source, sources, tries)
  local from = source .. place
  local ids, scores = next_ids(from, place, skip, most)
  local looked, stays = look_at(queue, place, ids, scores)
  local jobs, schedulers = queue.adoption.jobs, 0
  for _, job in ipairs(jobs) do schedulers = schedulers + (job.scheduler and 1 or 0) end
  local reply = { looked, #jobs, schedulers, stays, #stays / 2 }
  if tries or #jobs == 0 then return reply end

  Adopt.write(queue, place)
  leave(queue, from, place, skip == 0 and #stays == 0 and looked or 0)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, reply)
  return reply
end
