-- records: letting go of them, with everything that belongs to them.
--   logged     ids of jobs with a log (list logs:<id>)
--   parents    ids of jobs with children (states/parents; keys children:, processed:, ignored:, faults:, spans: and returned:<id>)
--   de:<id>    the job that owns a deduplication id; the job's state fields name the id (rules/deduplication)

-- Of a call: left_parents, removed jobs that something may wait for: {base, pa of their state fields, id} (states/parents).

-- A removed job's deduplication key goes with it, whatever time it had left, unless keys_stay, and what waits for it is told.
local function release_keys(queue, ids, from, to, keys_stay)
  for i, raw in ipairs(redis.call('HMGET', queue.base .. 'vitals', unpack(ids, from, to))) do
    local is_known = raw and (raw:find('\162di', 1, true) or raw:find('\162pa', 1, true) or raw:find('\162ex', 1, true))
    local ok, fields = pcall(cmsgpack.unpack, is_known and raw or '\128')
    if not ok or type(fields) ~= 'table' then fields = {} end
    local di, id = fields.di, ids[from + i - 1]
    if fields.ex then redis.call('ZREM', queue.base .. 'expiring', id) end
    if not keys_stay and type(di) == 'string' and redis.call('GET', queue.base .. 'de:' .. di) == id then redis.call('DEL', queue.base .. 'de:' .. di) end
    if type(fields.pa) == 'table' and type(fields.pa[1]) == 'string' and type(fields.pa[2]) == 'string' then
      queue.call.left_parents[#queue.call.left_parents + 1] = { queue.base, fields.pa, id }
    end
  end
end

-- Fields that few records have are looked for only where there are any. keys_stay: what the jobs' deduplication keys become was
-- settled before; a key with a time to live outlives a job that finished and is not kept. parents_know: nothing waits for the jobs that was
-- not told before. are_bare: none has state fields.
local function drop_records(queue, ids, keys_stay, parents_know, are_bare)
  local hashes = { 'jobs' }
  local has_fields = not are_bare and redis.call('EXISTS', queue.base .. 'vitals') == 1
  if has_fields then hashes[#hashes + 1] = 'vitals' end
  local has_more = redis.call('EXISTS', queue.base .. 'logged', queue.base .. 'parents', queue.base .. 'large', queue.base .. 'traces') > 0
  if has_more and redis.call('EXISTS', queue.base .. 'traces') == 1 then hashes[#hashes + 1] = 'traces' end
  local has_large = has_more and redis.call('EXISTS', queue.base .. 'large') == 1
  for from = 1, #ids, 1000 do
    local to = math.min(from + 999, #ids)
    if has_fields and not (keys_stay and parents_know) then release_keys(queue, ids, from, to, keys_stay) end
    for _, hash in ipairs(hashes) do redis.call('HDEL', queue.base .. hash, unpack(ids, from, to)) end
    -- keys of a record's own, whose names end with its id
    local starts_of = has_more and { logged = { 'logs:' }, parents = { 'children:', 'processed:', 'ignored:', 'faults:', 'spans:',
      'returned:' } } or {}
    if has_large then
      local fields = {}
      for i = from, to do
        fields[#fields + 1] = 'd' .. ids[i]
        fields[#fields + 1] = 'r' .. ids[i]
      end
      redis.call('HDEL', queue.base .. 'large', unpack(fields))
    end
    for set, starts in pairs(starts_of) do
      local gone, keys = {}, {}
      for i, found in ipairs(redis.call('SMISMEMBER', queue.base .. set, unpack(ids, from, to))) do
        local id = ids[from + i - 1]
        if found == 1 then gone[#gone + 1] = id end
        for _, start in ipairs(found == 1 and starts or {}) do keys[#keys + 1] = queue.base .. start .. id end
      end
      if #gone > 0 then
        redis.call('UNLINK', unpack(keys))
        redis.call('SREM', queue.base .. set, unpack(gone))
      end
    end
  end
end

return {
  release_keys = release_keys,
  drop_records = drop_records,
}
