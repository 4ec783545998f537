-- plain_jobs: what the short paths of a step (step/fast_path, step/few) and of an add (step/straight_add) share. A job is plain when it is alone in its frame, or a record without
-- state fields.
local EventLog = require('event_log')
local Holder = require('holder')
local Packed = require('packed')
local Retention = require('retention')
local State = require('state')
local Stored = require('stored')

local NONE = {}

-- Whether the queue has nothing of what few records have beside their body: state fields, logs, children, large values, stack traces.
local function is_bare(base)
  return redis.call('EXISTS', base .. 'vitals', base .. 'logged', base .. 'parents', base .. 'large', base .. 'traces') == 0
end

-- When a record that this worker holds by this claim had started, packed, its state fields (nil: none), and which start of it that was; nil: it does not.
-- bare: no record has state fields.
local function look_at_held_record(base, id, claim, bare, step)
  local raw = redis.call('HGET', base .. 'active', id)
  local fields = raw and not bare and redis.call('HGET', base .. 'vitals', id)
  local starts = fields and Holder.starts(raw) or 1
  local started = raw and Holder.started(raw, string.char(starts), step, claim)
  return started or nil, fields and Stored.fields(fields) or nil, starts
end

-- Whether nobody but its worker is to be told of a record's end, by its state fields.
local function stands_alone(known)
  return not (known.pa or known.ch or known.nx or known.hd)
end

-- State fields of a record that completed at its first try. started: when, packed; value: its result, packed ('' = undefined).
local function completed_fields(started, value, step)
  local name, count = step.worker_name, 132
  local fields = '\162am\1\162as\1\162po' .. started .. '\162fo' .. Packed.time(step.now_ms)
  if name ~= '' then count, fields = count + 1, fields .. '\162pb' .. Packed.text(name) end
  if value ~= '' then count, fields = count + 1, fields .. '\162rv' .. value end
  return string.char(count) .. fields
end

-- A frame of one job that completed, as it is kept (rules/retention); results: an array of one, or ''.
local function run_of(first, started, results, step)
  return '\150\1' .. cmsgpack.pack(first) .. '\1' .. started .. Packed.text(step.worker_name) .. Packed.text(results)
end

-- Keeps jobs that ended ({finished_on, member, ...}) in this set, and drops others by the rule (step/finish). queue: its state, with them counted.
local function keep_ended(queue, set, rule, add, now_ms)
  Retention.rank_ends(queue, set, add, now_ms, rule[1] > 0)
  redis.call('ZADD', queue.base .. set, unpack(add))
  Retention.apply_keep(queue, set, rule, now_ms, #add / 2, 0)
end

-- The same of jobs that completed. completed: kept jobs, with them. Gives their number, and that of frames that lie apart.
local function keep_completed(base, raw, rule, add, now_ms, completed)
  local queue = State.open(base, nil, raw)
  queue.completed = completed
  keep_ended(queue, 'completed', rule, add, now_ms)
  return queue.completed, queue.apart
end

-- Writes the events. False: another program's lie behind them, and the state was saved with their new place.
local function tell(base, saved, event_id, count, groups)
  local written = redis.pcall('XADD', base .. 'events', event_id, 'e', groups)
  if type(written) ~= 'table' then return true end
  EventLog.write_events(State.open(base, nil, saved), count, groups, NONE)
  return false
end

-- Saves the state, then writes the events (queue/events says why in this order).
local function save(base, saved, event_id, count, groups)
  redis.call('SET', base .. 'state', saved)
  tell(base, saved, event_id, count, groups)
end

return {
  is_bare = is_bare,
  look_at_held_record = look_at_held_record,
  stands_alone = stands_alone,
  completed_fields = completed_fields,
  run_of = run_of,
  keep_ended = keep_ended,
  keep_completed = keep_completed,
  tell = tell,
  save = save,
}
