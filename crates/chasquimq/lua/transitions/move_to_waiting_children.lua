-- move_to_waiting_children: active -> waiting-children, by the one who holds the job, while it waits for children.
-- KEYS    base (also: state meta jobs vitals active log front takes frames apart:<first> runs holes completed failed delayed prioritized waiting-children
--         events trims wake lease:<owner> children:<id> spans:<id> faults:<id> returned:<id> memo:<client>:<slot>)
-- ARGV    now_ms (epoch ms), client, slot, number, id, token (0 = anyone), child (its key: the one to wait for; '' = any)
-- RETURNS 0 | 1 it waits for no child, or not for that one | -1 | -2 | -3 | -6 | -9
-- ERRORS  -1 missing job, -2 missing lock, -3 not active, -6 lock mismatch, -9 failed children
-- EVENTS  waiting-children      COST O(log n)
-- SOURCE  BullMQ 6.7 Job#moveToWaitingChildren
-- FLAGS   allow-oom
local Events = require('events')
local Find = require('find')
local Locate = require('locate')
local Lock = require('lock')
local Memo = require('memo')
local SiblingRanges = require('sibling_ranges')
local WaitingList = require('waiting_list')

return function(keys, args)
  local base = keys[1]
  local now_ms, client, slot, number = tonumber(args[1]), args[2], args[3], tonumber(args[4])
  local id, token, child = args[5], args[6], args[7]

  local queue, known = Memo.open(base, client, slot, number)
  if known then return known end

  local job = Find.locate(queue, id)
  if not job then return -1 end
  if redis.call('EXISTS', base .. 'faults:' .. id) == 1 then return -9 end
  local children, ranges = base .. 'children:' .. id, base .. 'spans:' .. id
  if redis.call('EXISTS', children, ranges) == 0 then return 1 end

  local function is_in_range()
    local front, number = child:sub(1, -13), tonumber(child:sub(-12), 16)
    for _, range in ipairs(number and redis.call('SMEMBERS', ranges) or {}) do
      local first, count, front_of = SiblingRanges.read_range(range)
      if front == front_of and number >= first and number < first + count then return SiblingRanges.key_in_range(front, number) == child end
    end
  end

  if child ~= '' and redis.call('SISMEMBER', children, child) == 0 and not is_in_range() then return 1 end
  local code = Lock.check_lock(queue, job, token)
  if code ~= 0 then return code end
  local fields = Lock.leave_active(queue, job)
  -- its own delay counted when it started first
  fields.d = nil
  Locate.store_fields(queue, id, fields)
  redis.call('ZADD', base .. 'waiting-children', now_ms, id)
  Events.emit_job(queue, 'waiting-children', id, 'active')
  -- what waits may start in its place
  WaitingList.wake_for_work(queue)
  Events.flush_events(queue, now_ms)
  Memo.remember(base, client, slot, number, 0)
  return 0
end
