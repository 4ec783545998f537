-- next_iterations: makes what follows iterations that were taken, each one once: a taken one that is its scheduler's latest no more
-- has been followed. Those that are not to run now leave the active ones: they are gone, or wait for the run before (rules/overlap). Of a scheduler that
-- is paused what follows is noted. The server is asked for its time: by that the clocks of workers are compared.
-- KEYS    base (also: state meta log front jobs vitals traces active logged parents large takes frames apart:<first> runs holes prioritized grouped groups
--         group:<group> group-active group-settings group-holds:<group> completed failed waiting-children delayed delays schedulers scheduler
--         scheduler-runs events trims wake lease:<owner> logs:<id> de:<id>)
-- ARGV    now_ms (epoch ms), taken (MessagePack, one a taken iteration: {id, scheduler, slot, next_ms (0 = by the scheduler's own every_ms; -1 = nothing
--         follows), first_ms (0, or the time behind slot that next_ms passes over), rules ({overlap, catch_up, missed 1|0 (said where the caller knows next_ms), jitter_ms, token of its holder}; 0 = none), options,
--         id_text, priority, lifo 1|0, group or nil, terms or nil}; rules/schedulers)
-- RETURNS {slot, ...} of what follows each; 0 = nothing, or it is there; -1 = the taken one is not to run
-- ERRORS  none      EVENTS added, waiting, delayed, removed, duplicated      COST O(taken * log n)
-- SOURCE  BullMQ 6.7 Worker (differs: a batch)
-- FLAGS   allow-oom
local Events = require('events')
local Find = require('find')
local Groups = require('groups')
local Lock = require('lock')
local Overlap = require('overlap')
local Schedulers = require('schedulers')
local State = require('state')
local WaitingList = require('waiting_list')

local STEP = 500
local NOT_TO_RUN = -1
local NO_RULES = { 0, 0, 0, 0, '' }

-- Of a queue: following, what the call has found: now_ms; slots, one a taken iteration; added: iterations; moved, by scheduler; schedulers and counted: what
-- is written.

local function rules_of(item)
  local overlap, catch_up, missed, jitter_ms, token = unpack(item[6] ~= 0 and item[6] or NO_RULES)
  return { overlap = overlap, catch_up = catch_up, missed = missed == 1, jitter_ms = jitter_ms, token = token }
end

-- The iteration that follows a taken one of this scheduler, or nil; and whether the taken one was missed.
local function next_of(item, rules, scheduler, following)
  local fields, slot, first_ms, missed = scheduler.fields, item[4], item[5], rules.missed
  local every_ms = fields[5]
  local now_ms, clock_ms = Schedulers.common_clock(fields[Schedulers.CLOCK], following.now_ms, following.server_ms)
  if slot <= 0 and every_ms > 0 then
    local own, is_late = Schedulers.next_slot(item[3], every_ms, fields[6], now_ms, rules.catch_up, rules.jitter_ms)
    slot, missed = slot == 0 and own or slot, is_late
  elseif first_ms > 0 and first_ms + rules.jitter_ms >= now_ms then
    slot, missed = first_ms, false
  end
  if slot <= 0 then return nil, missed end
  return { id = Schedulers.iteration_id(item[2], slot), scheduler = item[2], slot = slot, name = fields[1], data = fields[2], every_ms = every_ms,
    jitter_ms = rules.jitter_ms, options = item[7], id_text = item[8], priority = item[9], lifo = item[10] == 1, group = item[11], terms = item[12],
    count = scheduler.count, fields = fields, clock_ms = clock_ms, raw = scheduler.raw }, missed
end

local function advance(following, it)
  following.moved[it.scheduler] = true
  local held = it.fields[Schedulers.HELD]
  it.fields[Schedulers.CLOCK] = it.clock_ms or it.fields[Schedulers.CLOCK]
  if held then
    it.fields[Schedulers.HELD] = Schedulers.iteration_options(it, following.now_ms)
  else
    WaitingList.append(following.added, it)
  end
  WaitingList.append(following.schedulers, it.scheduler, (held or it.clock_ms) and Schedulers.pack_scheduler(it.count + 1, it.fields)
    or struct.pack('<d', it.count + 1) .. it.raw:sub(Schedulers.COUNT_BYTES + 1))
  WaitingList.append(following.counted, it.slot, it.scheduler)
end

-- Whether a taken iteration is to run, and whether what follows it is made now. is_missed: whether it would be dropped for that.
local function judge(queue, item, rules, is_missed)
  local id, scheduler, slot = item[1], item[2], item[3]
  if rules.overlap == 0 and not is_missed then return true, true end
  local job = Find.locate(queue, id)
  if Lock.check_lock(queue, job, rules.token) ~= 0 or not job.record then return false, false end
  local verdict, owner, is_excused = Overlap.judge(queue, scheduler, slot, rules.overlap, job)
  local now_ms = queue.following.now_ms
  if verdict == 'hold' then
    Overlap.hold(queue, job, owner, now_ms)
    return false, false
  elseif verdict == 'skip' or (is_missed and not is_excused) then
    Overlap.drop(queue, job)
    return false, true
  end
  if rules.overlap > 0 then Overlap.begin(queue, scheduler, job, now_ms) end
  return true, true
end

-- The iterations that follow some taken ones, each with its place among the slots.
local function find_next(queue, items)
  local following, ids, found = queue.following, {}, {}
  for i, item in ipairs(items) do ids[i] = item[2] end
  local latest, raws = redis.call('ZMSCORE', queue.base .. 'schedulers', unpack(ids)), redis.call('HMGET', queue.base .. 'scheduler', unpack(ids))
  for i, item in ipairs(items) do
    local scheduler, rules, it, missed = { raw = raws[i] }, rules_of(item), nil, false
    if raws[i] then scheduler.count, scheduler.fields = Schedulers.read_scheduler(raws[i]) end
    -- what is stored of one that has no latest iteration any more tells that it goes on
    local is_latest = scheduler.count and (not latest[i] or tonumber(latest[i]) == item[3]) and item[1] == Schedulers.iteration_id(item[2], item[3])
    if is_latest then it, missed = next_of(item, rules, scheduler, following) end
    local drops_missed = missed and (rules.catch_up == Schedulers.CATCH_UP.NONE or rules.catch_up == Schedulers.CATCH_UP.LATEST)
    local runs, goes_on = true, true
    if scheduler.count then runs, goes_on = judge(queue, item, rules, drops_missed) end
    WaitingList.append(following.slots, runs and 0 or NOT_TO_RUN)
    if it and goes_on then
      it.at = runs and #following.slots or nil
      found[#found + 1] = it
    end
  end
  return found
end

local function follow(queue, items)
  local following, found, names = queue.following, find_next(queue, items), {}
  if #found == 0 then return end
  for i, it in ipairs(found) do names[i] = it.id end
  for i, body in ipairs(redis.call('HMGET', queue.base .. 'jobs', unpack(names))) do
    local it = found[i]
    if body then
      Events.emit_job(queue, 'duplicated', it.id)
    elseif not following.moved[it.scheduler] then
      if it.at then following.slots[it.at] = it.fields[Schedulers.HELD] and 0 or it.slot end
      advance(following, it)
    end
  end
end

return function(keys, args)
  local base = keys[1]
  local now_ms, taken = tonumber(args[1]), cmsgpack.unpack(args[2])

  local queue = State.open(base)

  local following = { now_ms = now_ms, server_ms = Groups.server_ms(), slots = {}, added = {}, moved = {}, schedulers = {}, counted = {} }
  queue.following = following
  for from = 1, #taken, STEP do follow(queue, { unpack(taken, from, math.min(from + STEP - 1, #taken)) }) end
  if #following.schedulers > 0 then
    WaitingList.call_in_chunks('HSET', base .. 'scheduler', following.schedulers)
    WaitingList.call_in_chunks('ZADD', base .. 'schedulers', following.counted)
  end
  if #following.added > 0 then Schedulers.add_iterations(queue, following.added, now_ms) end
  Events.flush_events(queue, now_ms)
  return following.slots
end
