-- holder: who holds a record (hash active) or a frame (hash takes, jobs/frame) that was taken for the first time, as it is stored: {started_ms, starts
-- or chars, owner, worker_name, claim}; behind it of a record of a group, as a seventh value, the group (states/groups). It is put together, and known again, as a text: most are written once and compared once.
local Packed = require('packed')

-- What stands behind the time: a record's first start; no job has left the frame.
local RECORD, FRAME = '\1', '\160'

-- The last three values. step: owner, worker_name.
local function holder(step, claim)
  local worker = step.packed_worker
  if not worker then
    worker = Packed.text(step.owner) .. Packed.text(step.worker_name)
    step.packed_worker = worker
  end
  return worker .. cmsgpack.pack(claim)
end

-- Of what this step takes: step also has now_ms and claim. more: a text behind it, which nobody reads (step/fetched), or false.
local function entry(step, of, more)
  local held = Packed.time(step.now_ms) .. of .. holder(step, step.claim)
  return more and '\150' .. held .. Packed.text(more) or '\149' .. held
end

-- The same entry, of a record of this group.
local function of_group(plain, group)
  return '\151' .. plain:sub(2) .. (plain:byte(1) == 150 and '' or '\160') .. Packed.text(group)
end

-- The packed time of such an entry of the same worker and this claim; nil when the stored one is another, or of a frame of children.
local function started(raw, of, step, claim)
  local known = of .. holder(step, claim)
  local ends_at = 10 + #known
  if raw:byte(2) ~= 207 or raw:sub(11, ends_at) ~= known or (#raw > ends_at and (of == FRAME or raw:byte(1) ~= 150)) then return nil end
  return raw:sub(2, 10)
end

-- The count of starts in a record's entry; nil where it is not a byte.
local function starts(raw)
  local count = raw:byte(11)
  return count and count < 128 and count or nil
end

return {
  RECORD = RECORD,
  FRAME = FRAME,
  entry = entry,
  of_group = of_group,
  started = started,
  starts = starts,
}
