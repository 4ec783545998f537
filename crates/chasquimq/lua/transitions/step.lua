-- step: a worker's whole round trip. Finishes what is done, then fetches what can start, once however often it is sent.
-- KEYS    base (also: state turns grouped groups groups-limited groups-maxed groups-paused group:<group> group-active group-settings group-starts:<group> group-held group-holds:<group> meta
--         log
--         front takes frames apart:<first> holes gone jobs vitals traces large active delayed delays expiring key-limit:<key> key-line:<key> prioritized completed runs failed
--         events trims waiting-workers wake limiter open metrics:<state> metrics:<state>:data lease:<owner> memo:<owner>:s logged logs:<id> de:<id>; of parents,
--         in any queue: parents children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id> waiting-children)
-- ARGV    asked (MessagePack values, one behind the other: 0, which ends what a server without functions repeats of it in its error,
--         now_ms (epoch ms, of the outcomes; -1 = the server's clock + offset_us), owner, number, lease_ms,
--         worker_name, want (jobs; -1 = do not fetch), reach (no more of them where few jobs wait, and another worker for them), surplus (jobs beyond those, where no worker waits for jobs), max_bytes, offset_us (the caller's clock minus the server's, or less:
--         what is fetched starts when this is carried out, and nobody can send that time), limits (of this worker; 0 = none; else
--         {starts a window (0 = any), ms of a window (0 = as the queue says), group_rules (step/turns)}), leaves_due (1: nobody looks whether delayed jobs are due), asks_due (1:
--         next_due_ms is told though no slot is left; perhaps this worker alone knows of it), slots (jobs that the worker runs at once), waits (what
--         the worker knows of itself, states/waiting_workers; 0: it hears nothing), outcomes
--         (step/finish), keeps (step/finish); or, of one plain job that completed, its claim, keep, place and results (step/fast_path)), then the
--         large results and data (step/finish)
-- RETURNS {rejected, taken, next_due_ms or -1, gated 0|1, left 0|1|2 (1: more jobs could start now, or what was due is delayed; 2: none, and the
--         worker is among those that wait), now_ms (of the fetch), server_us (both 0 when there is nothing to take, nor delayed: no clock was read), limited_ms (no
--         job starts here for so long), claim (of what was taken)}; taken, in the order of the waiting list: first, n, blob of a frame | -n, columns of n records
--         (give_records)
-- ERRORS  rejected: -1 missing job, -2 missing lock, -4 pending children, -6 lock mismatch, -9 failed children
-- EVENTS  completed, failed, retries-exhausted, delayed, waiting, active, drained      COST O(outcomes + taken)
-- SOURCE  BullMQ 6.7 Worker (differs: a batch of jobs a call)
-- FLAGS   allow-oom
local Delayed = require('delayed')
local FastPath = require('fast_path')
local Few = require('few')
local Fetched = require('fetched')
local Frame = require('frame')
local Lease = require('lease')
local Limits = require('limits')
local Memo = require('memo')
local Prioritized = require('prioritized')
local RoundTrip = require('round_trip')
local State = require('state')
local StepMemo = require('step_memo')
local Stored = require('stored')
local WaitingList = require('waiting_list')
local WaitingWorkers = require('waiting_workers')

local NONE, NO_LIMITS = {}, { 0, 0, 0 }

-- Jobs that wait, at most, where workers share them one by one.
local MOST_SHARED = 16

-- The reply of a step that was carried out before: what it took, and still holds, is read again.
local function replay(queue, known, owner, claim, server_us, limits)
  local due_ms, gated, now_ms, limited_ms, rejected, known_ids = StepMemo.read(known)
  local taken, records = {}, 0
  local function replay_record(id, are_few)
    local raw, body = redis.call('HGET', queue.base .. 'active', id), redis.call('HGET', queue.base .. 'jobs', id)
    local ok, active = pcall(cmsgpack.unpack, raw or '')
    if ok and type(active) == 'table' and active[3] == owner and Frame.is_claim(active[5], claim) and body then
      local fields = redis.call('HGET', queue.base .. 'vitals', id)
      local known = Stored.fields(fields)
      local traces = are_few and Stored.has_traces(known) and { redis.call('HGET', queue.base .. 'traces', id) }
      Fetched.give_records(taken, { id }, { body }, { fields or '' }, { active[2] }, traces)
    end
  end
  local function holds_frame(first)
    local holder = Frame.load_holder(queue, first)
    return holder and holder[3] == owner and Frame.is_claim(holder[5], claim)
  end
  for i = 1, #known_ids, 2 do
    local first, n, ids = known_ids[i], known_ids[i + 1], nil
    if first > 0 and type(n) == 'table' then n, ids = n[1], n[2] end
    if first == 0 then
      records = records + #n
      for _, id in ipairs(n) do replay_record(id, records <= Fetched.FEW_TRACES) end
    elseif holds_frame(first) then
      WaitingList.append(taken, first, n, Frame.frame_blob(queue, first, n))
    else
      -- every job of the frame was given a record since, or left
      for job = first, first + n - 1 do replay_record(Frame.id_in(ids, job)) end
    end
  end
  Limits.load_limits(queue, limits[1], limits[2])
  local is_left = WaitingList.has_work(queue) and RoundTrip.may_start(queue)
  return { rejected, taken, due_ms, gated, is_left and 1 or 0, now_ms, server_us,
    limited_ms > 0 and math.max(Limits.window_left(queue), 1) or 0, claim }
end

-- A plain job that completed, as an outcome, and its rule (step/finish).
local function outcome_of(step)
  local place, rule = step.place, type(step.keep) == 'table' and step.keep or { step.keep, -1, 0 }
  if type(place) == 'number' then return { 'c', place, 1, 0, step.ended, 1, 1, step.results }, rule end
  return { 'r', 0, 0, 0, step.ended, { place }, 1, step.results }, rule
end

-- The outcome of a single job that did not complete (step/one_failure), or false.
local function failure_in(outcomes)
  local outcome = #outcomes == 1 and outcomes[1]
  return outcome and (outcome[1] == 'f' or outcome[1] == 'm') and outcome
end

-- The server's clock, and the caller's, in us and ms; and the seconds of the server's, a text.
local function read_clocks(offset_us)
  local time = redis.call('TIME')
  local server_us = time[1] * 1000000 + time[2]
  return server_us, math.floor((server_us + offset_us) / 1000), time[1]
end

-- What a step tells of what is left.
local function left_to(base, owner, waits, has_room, is_left)
  if not is_left and has_room and WaitingWorkers.goes_on_waiting(base, owner, waits) then return 2 end
  if not has_room and waits == WaitingWorkers.WAITS then WaitingWorkers.remove(base, owner) end
  return is_left and 1 or 0
end

-- The reply to one that looks in vain, or nil. Of all that a step does nothing is needed: the worker holds no job that
-- needs a lease, and a copy that is sent later brings a time, and is remembered itself. (A queue without a state gets one,
-- and places that count on, of jobs with a priority most likely, are not looked at twice.)
local function reply_to_idle(base, state, none_delayed, offset_us, claim, waits_on)
  if State.waiting_in(state) > 0 then return nil end
  local queue = State.open(base, nil, state)
  if queue.place > Prioritized.FIRST_PLACE or WaitingList.has_work(queue) then return nil end
  local due_ms = not none_delayed and Delayed.next_due(queue)
  if not due_ms then return { {}, {}, -1, 0, waits_on() and 2 or 0, 0, 0, 0, claim } end
  local server_us, now_ms = read_clocks(offset_us)
  if due_ms > now_ms then return { {}, {}, due_ms, 0, waits_on() and 2 or 0, now_ms, server_us, 0, claim } end
end

-- Whether this step leaves all but `reach` jobs to a worker that waits for some. Of many there are enough for all, and frames are taken whole.
local function is_another_idle(base, state, reach, may_be_more)
  local waiting = State.waiting_in(state)
  return waiting <= MOST_SHARED and (waiting > reach or State.place_in(state) > Prioritized.FIRST_PLACE or may_be_more) and not WaitingList.are_all_busy(base)
end

return function(keys, args)
  local base = keys[1]
  local asked = args[1]
  local large = #args > 1 and { unpack(args, 2) }

  local _, now_ms, owner, number, lease_ms, worker_name, want, reach, surplus, max_bytes, offset_us, limits, leaves_due, asks_due, slots, waits,
    outcomes, keeps, place, results = cmsgpack.unpack(asked)
  if limits == 0 then limits = NO_LIMITS end

  -- what is taken is this worker's by this number, which is no other step's (jobs/frame)
  local claim = 2 * number

  local memo, lease = StepMemo.key_of(base, owner), Lease.key_of(base, owner)
  local state, known, left, delays, turns = Memo.read_beside(base, memo, number, lease, base .. 'delays', base .. 'turns')
  if now_ms < 0 and state and not known and not turns then
    local function waits_on() return want > 0 and WaitingWorkers.goes_on_waiting(base, owner, waits) end
    local idle = reply_to_idle(base, state, not delays, offset_us, claim, waits_on)
    if idle then return idle end
  end

  local server_us, carried_out_ms, seconds = read_clocks(offset_us)
  if now_ms < 0 then now_ms = carried_out_ms end

  Lease.renew(lease, left, lease_ms, seconds)

  if known then
    local queue = State.open(base, nil, state)
    return replay(queue, known, owner, claim, server_us, limits)
  end

  local wanted = want
  if want > reach and state and is_another_idle(base, state, reach, delays or turns) then want, surplus = reach, 0 end
  local step = { now_ms = now_ms, starts_ms = math.max(now_ms, carried_out_ms), owner = owner, claim = claim, worker_name = worker_name,
    leaves_due = leaves_due == 1, none_delayed = not delays, asks_due = asks_due == 1, want = want, surplus = surplus, keeps = keeps,
    failure = not place and failure_in(outcomes),
    -- of one plain job that completed
    place = place, ended = outcomes, results = results, keep = keeps }
  local items, ids, due, is_left
  local rejected, gated, limited_ms = NONE, 0, 0
  -- the short paths know nothing of groups
  local is_of_few = state and limits[1] == 0 and not turns
  if is_of_few and (place or step.failure or #outcomes == 0) then
    items, ids, due, is_left = FastPath.run(base, state, step)
    is_of_few = not items and ids
  end
  if not items then
    step.max_bytes = max_bytes
    if place then
      local outcome, rule = outcome_of(step)
      outcomes, step.keeps = { outcome }, { rule }
    end
    if is_of_few then items, ids, due, is_left = Few.run(base, state, outcomes, step) end
  end
  if not items then
    step.lease_ms, step.limiter_max, step.limiter_ms, step.group_rules = lease_ms, limits[1], limits[2], limits[3]
    step.large, step.server_ms = large, math.floor(server_us / 1000)
    step.ahead_ms = step.starts_ms - step.server_ms
    local queue = State.open(base, nil, state)
    rejected, due, gated, limited_ms, is_left = RoundTrip.run(queue, outcomes, want, surplus, step)
    items, ids = queue.fetched.items, cmsgpack.pack(queue.fetched.ids)
  end

  local left
  if rejected[1] or gated == 1 or limited_ms > 0 then
    left = is_left and 1 or 0
  else
    left = left_to(base, owner, waits, step.taken < wanted, is_left)
  end
  Memo.remember_packed(memo, StepMemo.head(number, due or -1, gated, step.now_ms, limited_ms, slots)
    .. (rejected[1] and cmsgpack.pack(rejected) or '\144') .. ids)
  return { rejected, items, due or -1, gated, left, step.now_ms, server_us, limited_ms, claim }
end
