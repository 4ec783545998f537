-- waiting_workers: workers that wait for something to do, and how each of them is told. They are the set `waiting-workers`, which a worker is in since a
-- step or `park` put it there; whoever makes work takes one out, and publishes on the channel of that one, in a message without a text. A worker whose
-- connection is gone is heard by nobody: it is passed over. Those that rest because of a rate limit are the set `resting`, and are told together.
-- A message with a text asks a worker to look which of its jobs are cancelled (lists/cancel): one that does not hear finds out as it renews its lease.
-- Channels are sharded: in a cluster a worker listens where its queue is.

local CHANNEL = 'worker:'

-- What a step tells of its worker: whether it is among those that wait, as far as it knows. One that is not heard tells 0.
local BUSY, WAITS = 1, 2

-- Whether somebody heard. A user who may not publish tells nobody.
local function tell(base, owner)
  local heard = redis.pcall('SPUBLISH', base .. CHANNEL .. owner, '')
  return type(heard) == 'number' and heard > 0
end

-- Asks a worker to look.
local function ask(base, owner)
  redis.pcall('SPUBLISH', base .. CHANNEL .. owner, 'cancel')
end

-- Tells one that waits, who waits no more then. False where nobody does.
local function tell_one(base)
  while true do
    local owner = redis.pcall('SPOP', base .. 'waiting-workers')
    if type(owner) ~= 'string' then return false end
    if tell(base, owner) then return true end
  end
end

-- Tells all that listen, of a queue that is new, or was emptied: who waited there was forgotten with it. A user who may not ask for channels tells nobody.
local function tell_all(base)
  -- a refusal would stand in the server's log
  if not redis.acl_check_cmd('PUBSUB', 'SHARDCHANNELS') then return end
  local channels = redis.pcall('PUBSUB', 'SHARDCHANNELS', base:gsub('[%*%?%[\\]', '\\%0') .. CHANNEL .. '*')
  if channels.err then return end
  for _, channel in ipairs(channels) do redis.pcall('SPUBLISH', channel, '') end
end

-- Tells all that rest.
local function tell_resting(base)
  local owners = redis.pcall('SMEMBERS', base .. 'resting')
  if owners.err or not owners[1] then return end
  redis.call('UNLINK', base .. 'resting')
  for _, owner in ipairs(owners) do tell(base, owner) end
end

-- A worker waits from now on.
local function add(base, owner)
  redis.pcall('SADD', base .. 'waiting-workers', owner)
end

-- A worker rests for so long. The set goes once none does.
local function rest(base, owner, rest_ms)
  local resting = base .. 'resting'
  redis.pcall('SADD', resting, owner)
  if redis.call('PTTL', resting) < rest_ms then redis.call('PEXPIRE', resting, rest_ms) end
end

-- The same of one that has room for more than there is; false where the marker is there: it is to look. waits: what it knows; of one that waits, and was told
-- meanwhile, the message is under way.
local function goes_on_waiting(base, owner, waits)
  if waits == WAITS then return true end
  if waits ~= BUSY or redis.call('EXISTS', base .. 'wake') == 1 then return false end
  add(base, owner)
  return true
end

-- A worker waits no more. Whether it did.
local function remove(base, owner)
  return redis.pcall('SREM', base .. 'waiting-workers', owner) == 1
end

-- A worker is gone.
local function forget(base, owner)
  remove(base, owner)
  redis.pcall('SREM', base .. 'resting', owner)
end

return {
  WAITS = WAITS,
  add = add,
  ask = ask,
  forget = forget,
  goes_on_waiting = goes_on_waiting,
  remove = remove,
  rest = rest,
  tell_all = tell_all,
  tell_one = tell_one,
  tell_resting = tell_resting,
}
