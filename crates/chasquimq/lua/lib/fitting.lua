-- fitting: how many records, or other fields, one call reads: as many as have MAX_BYTES together, since a script copies what it reads several
-- times. Their sizes are asked for one by one, so that no mixture of small and large ones reads more.
local MAX_BYTES = 1048576

-- Whether there is such a hash, by its name. Asked once.
local found_hashes = {}

-- Bytes of a field in these hashes.
local function field_bytes(hashes, id)
  local bytes = 0
  for _, hash in ipairs(hashes) do
    if found_hashes[hash] == nil then found_hashes[hash] = redis.call('EXISTS', base .. hash) == 1 end
    if found_hashes[hash] then bytes = bytes + redis.call('HSTRLEN', base .. hash, id) end
  end
  return bytes
end

-- The last of the ids, from this one on, that may be read together with what was read already: this one at least. Gives also their bytes.
local function last_fitting(hashes, ids, from, bytes)
  for i = from, #ids do
    local more = field_bytes(hashes, ids[i])
    if i > from and bytes + more > MAX_BYTES then return i - 1, bytes end
    bytes = bytes + more
  end
  return #ids, bytes
end
