-- delayed: a sorted set by due time; the low twelve bits of a score keep arrival order within a millisecond.
local delayed_seq = {}

local function delayed_score(due_ms)
  local seq = delayed_seq[due_ms]
  if not seq then
    local low = due_ms * 4096
    local last = redis.call('ZREVRANGEBYSCORE', base .. 'delayed', whole(low + 4095), whole(low), 'WITHSCORES', 'LIMIT', 0, 1)
    seq = last[2] and (tonumber(last[2]) - low) or -1
  end
  seq = math.min(seq + 1, 4095)
  delayed_seq[due_ms] = seq
  return whole(due_ms * 4096 + seq)
end

-- Due time of the earliest delayed job, or nil.
local function next_due()
  local head = redis.call('ZRANGE', base .. 'delayed', 0, 0, 'WITHSCORES')
  return head[2] and math.floor(tonumber(head[2]) / 4096)
end
