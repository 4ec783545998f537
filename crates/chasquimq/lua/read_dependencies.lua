-- read_dependencies: no change. Gives what parents know of their children (lib/parents): pages of any kind, or how many there are.
-- KEYS    base (also: children:<id> processed:<id> ignored:<id> faults:<id>)
-- ARGV    ids (MessagePack array), pages (MessagePack array, three values a page: kind (children|processed|ignored|faults), cursor
--         (scan's; a rank of faults), count (about so many; of faults the rank behind the last; 0 = all of them, -1 = their number))
-- RETURNS {next cursor or number, {value, ...}, ...} two a page, page by page of each id. Values are the children's keys; of processed
--         and ignored key and value in turn. The cursor is 0 behind the last page; of faults it is cursor + count
-- ERRORS  none      EVENTS none      COST O(children on the pages)
-- SOURCE  BullMQ 6.7 Job#getDependencies, #getDependenciesCount, #getIgnoredChildrenFailures, Queue#getDependencies
local base = KEYS[1]
local ids, pages = cmsgpack.unpack(ARGV[1]), cmsgpack.unpack(ARGV[2])

-- How each kind is counted, read whole and paged.
local KINDS = {
  children = { 'SCARD', 'SMEMBERS', 'SSCAN' },
  processed = { 'HLEN', 'HGETALL', 'HSCAN' },
  ignored = { 'HLEN', 'HGETALL', 'HSCAN' },
  faults = { 'ZCARD', 'ZRANGE' },
}

-- Next cursor, or number, and values of one page.
local function page(kind, key, cursor, count)
  local number_of, all_of, scan = unpack(KINDS[kind])
  if count < 0 then return redis.call(number_of, key), {} end
  if kind == 'faults' then
    if count == 0 then return 0, redis.call(all_of, key, 0, -1) end
    return cursor + count, redis.call(all_of, key, cursor, count - 1)
  end
  if count == 0 then return 0, redis.call(all_of, key) end
  local found = redis.call(scan, key, cursor, 'COUNT', count)
  return found[1], found[2]
end

local out = {}
for _, id in ipairs(ids) do
  for i = 1, #pages, 3 do
    local kind = pages[i]
    out[#out + 1], out[#out + 2] = page(kind, base .. kind .. ':' .. id, pages[i + 1], pages[i + 2])
  end
end
return out
