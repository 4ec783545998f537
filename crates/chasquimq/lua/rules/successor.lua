-- successor: a job that owned a deduplication id (rules/deduplication) has finished for good: its key goes, or passes to the job that was kept meanwhile.
local Deduplication = require('deduplication')
local Events = require('events')
local Find = require('find')
local Groups = require('groups')
local Overlap = require('overlap')
local Prioritized = require('prioritized')
local Stored = require('stored')
local Terms = require('terms')
local WaitingList = require('waiting_list')

-- What an owner of a deduplication id kept while it was active becomes a job, and the owner. A job of its id may exist by now.
local function add_next(queue, item, body, step)
  local finishing = queue.finishing
  local id, name, due_ms, front, dedup = item[2], item[3], item[4], item[5], item[6]
  queue.id = queue.id + 1
  if finishing.added[id] or redis.call('HEXISTS', queue.base .. 'jobs', id) == 1 or (queue.flows == 1 and Find.locate(queue, id)) then
    Events.emit_job(queue, 'duplicated', id)
    return false
  end
  local values = Stored.body(body)
  local delay_ms = math.max(due_ms - values[1], 0)
  values[1] = step.now_ms
  if #values > 4 then Prioritized.expect_priorities(queue) end
  if values[6] then Groups.expect(queue) end
  finishing.added[id] = true
  WaitingList.append(finishing.jobs_set, id, cmsgpack.pack(values))
  local fields = Deduplication.fields_of(dedup)
  Terms.note(queue, id, fields, item[9])
  WaitingList.append(finishing.fields_set, id, cmsgpack.pack(fields))
  if due_ms > 0 then
    due_ms = step.now_ms + delay_ms
    WaitingList.append(finishing.delayed, id)
    WaitingList.append(finishing.dues, due_ms)
    Events.emit(queue, 2, { 'B', { id }, 1, name, 'delayed', { due_ms } })
  else
    WaitingList.append(front == 1 and finishing.front or finishing.waiting, id)
    Events.emit(queue, 2, { 'B', { id }, 1, name, 'waiting' })
  end
  redis.call('SET', queue.base .. 'de:' .. dedup[1], id)
  return true
end

-- A deduplicated job has finished for good. Its key goes, unless it has a ttl, or passes to the job that was kept.
local function pass_key_on(queue, id, fields, step)
  local kept = fields.nx
  fields.nx = nil
  if kept and add_next(queue, kept[1], kept[2], step) then return end
  local key = queue.base .. 'de:' .. fields.di
  if redis.call('GET', key) ~= id then return end
  if redis.call('PTTL', key) < 0 then redis.call('DEL', key) end
  Overlap.note_end(queue, id, fields, step.now_ms)
end

return {
  pass_key_on = pass_key_on,
}
