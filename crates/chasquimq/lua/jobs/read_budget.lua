-- read_budget: how many records, or other fields, one call reads: as many as have MAX_BYTES together, since a script copies what it reads several
-- times. Their sizes are asked for one by one, so that no mixture of small and large ones reads more.
local MAX_BYTES = 1048576

-- Whether a queue has such a hash. Asked once.
local function has_hash(queue, hash)
  local known = queue.known_hashes or {}
  queue.known_hashes = known
  if known[hash] == nil then known[hash] = redis.call('EXISTS', queue.base .. hash) == 1 end
  return known[hash]
end

-- Bytes of a field in these hashes.
local function field_bytes(queue, hashes, id)
  local bytes = 0
  for _, hash in ipairs(hashes) do
    if has_hash(queue, hash) then bytes = bytes + redis.call('HSTRLEN', queue.base .. hash, id) end
  end
  return bytes
end

-- The last of the ids, from this one on, that may be read together with what was read already: this one at least. Gives also their bytes.
local function last_fitting(queue, hashes, ids, from, bytes)
  for i = from, #ids do
    local more = field_bytes(queue, hashes, ids[i])
    if i > from and bytes + more > MAX_BYTES then return i - 1, bytes end
    bytes = bytes + more
  end
  return #ids, bytes
end

return {
  MAX_BYTES = MAX_BYTES,
  has_hash = has_hash,
  field_bytes = field_bytes,
  last_fitting = last_fitting,
}
