-- records: letting go of them, with everything that belongs to them.
--   logged     ids of jobs with a log (list logs:<id>)
--   parents    ids of jobs with children (lib/parents; keys children:, processed:, ignored:, faults:, spans: and returned:<id>)
--   de:<id>    the job that owns a deduplication id; the job's vitals name the id (lib/dedup)

-- Removed jobs that something may wait for: {base, pa of their vitals, id} (lib/parents).
local left_parents = {}

-- @cold
-- A removed job's deduplication key goes with it, whatever time it had left, unless keys_stay, and what waits for it is told.
local function release_keys(ids, from, to, keys_stay)
  for i, raw in ipairs(redis.call('HMGET', base .. 'vitals', unpack(ids, from, to))) do
    local is_known = raw and (raw:find('\162di', 1, true) or raw:find('\162pa', 1, true))
    local ok, vitals = pcall(cmsgpack.unpack, is_known and raw or '\128')
    if not ok or type(vitals) ~= 'table' then vitals = {} end
    local di, id = vitals.di, ids[from + i - 1]
    if not keys_stay and type(di) == 'string' and redis.call('GET', base .. 'de:' .. di) == id then redis.call('DEL', base .. 'de:' .. di) end
    if type(vitals.pa) == 'table' and type(vitals.pa[1]) == 'string' and type(vitals.pa[2]) == 'string' then
      left_parents[#left_parents + 1] = { base, vitals.pa, id }
    end
  end
end

-- Fields that few records have are looked for only where there are any. keys_stay: what the jobs' deduplication keys become was
-- settled before; a key with a time to live outlives a job that finished and is not kept. parents_know: nothing waits for the jobs that was
-- not told before.
local function drop_records(ids, keys_stay, parents_know)
  local hashes = { 'jobs' }
  local has_vitals = redis.call('EXISTS', base .. 'vitals') == 1
  if has_vitals then hashes[#hashes + 1] = 'vitals' end
  if redis.call('EXISTS', base .. 'traces') == 1 then hashes[#hashes + 1] = 'traces' end
  local has_more = redis.call('EXISTS', base .. 'logged', base .. 'parents', base .. 'large') > 0
  local has_large = has_more and redis.call('EXISTS', base .. 'large') == 1
  for from = 1, #ids, 1000 do
    local to = math.min(from + 999, #ids)
    if has_vitals and not (keys_stay and parents_know) then release_keys(ids, from, to, keys_stay) end
    for _, hash in ipairs(hashes) do redis.call('HDEL', base .. hash, unpack(ids, from, to)) end
    -- keys of a record's own, whose names end with its id
    local starts_of = has_more and { logged = { 'logs:' }, parents = { 'children:', 'processed:', 'ignored:', 'faults:', 'spans:',
      'returned:' } } or {}
    if has_large then
      local fields = {}
      for i = from, to do
        fields[#fields + 1] = 'd' .. ids[i]
        fields[#fields + 1] = 'r' .. ids[i]
      end
      redis.call('HDEL', base .. 'large', unpack(fields))
    end
    for set, starts in pairs(starts_of) do
      local gone, keys = {}, {}
      for i, found in ipairs(redis.call('SMISMEMBER', base .. set, unpack(ids, from, to))) do
        local id = ids[from + i - 1]
        if found == 1 then gone[#gone + 1] = id end
        for _, start in ipairs(found == 1 and starts or {}) do keys[#keys + 1] = base .. start .. id end
      end
      if #gone > 0 then
        redis.call('UNLINK', unpack(keys))
        redis.call('SREM', base .. set, unpack(gone))
      end
    end
  end
end
-- @warm
