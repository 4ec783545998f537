-- read_dependencies: no change. Gives what parents know of their children (states/parents): pages of any kind, or how many there are.
-- KEYS    base (also: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    ids (MessagePack array), pages (MessagePack array, three values a page: kind (children|processed|ignored|faults), cursor
--         (scan's, or IN_SPANS and the number of the last child; a rank of faults), count (about so many; of faults the rank behind the
--         last; 0 = all of them, a thousand a call when there are more; -1 = their number))
-- RETURNS {next cursor or number, {value, ...}, ...} two a page, page by page of each id. Values are the children's keys; of processed
--         and ignored key and value in turn. The cursor is 0 behind the last page; of faults it is cursor + count, but
--         for all of them
-- ERRORS  none      EVENTS none      COST O(children on the pages, and ranges)
-- SOURCE  BullMQ 6.7 Job#getDependencies, #getDependenciesCount, #getIgnoredChildrenFailures, Queue#getDependencies
-- FLAGS   no-writes
local SiblingRanges = require('sibling_ranges')

-- more than a scan's cursor; SCANS, and a scan's: where ranges come first
local IN_SPANS, SCANS = 1125899906842624, 2251799813685248
local MOST = 1000

-- How each kind is counted, read whole and paged; where its ranges are (jobs/sibling_ranges), and how they are read.
local KINDS = {
  children = { 'SCARD', 'SMEMBERS', 'SSCAN', 'spans', 'SMEMBERS' },
  processed = { 'HLEN', 'HGETALL', 'HSCAN', 'returned', 'HKEYS' },
  ignored = { 'HLEN', 'HGETALL', 'HSCAN' },
  faults = { 'ZCARD', 'ZRANGE' },
}

-- Spans of a kind, by their numbers: {first, count, front, range}.
local function ranges_of(base, kind, id)
  local ranges, key, all_of = {}, KINDS[kind][4], KINDS[kind][5]
  for i, range in ipairs(key and redis.call(all_of, base .. key .. ':' .. id) or {}) do
    local first, count, front = SiblingRanges.read_range(range)
    ranges[i] = { first, count, front, range }
  end
  table.sort(ranges, function(a, b) return a[1] < b[1] end)
  return ranges
end

-- Adds what a page tells of some children of a span: numbers, in order.
local function give_children(base, values, kind, id, range, numbers)
  local returned = range.returned
  if kind == 'processed' and not returned then
    returned = SiblingRanges.pairs_in_range(range[4], redis.call('HGET', base .. 'returned:' .. id, range[4]))
    range.returned = returned
  end
  for _, number in ipairs(numbers) do
    values[#values + 1] = SiblingRanges.key_in_range(range[3], number)
    if returned then values[#values + 1] = returned[2 * (number - range[1] + 1)] end
  end
end

-- Adds `room` children of ranges, or a few more, whose numbers are above this one. Gives the cursor of the next page.
local function page_of_ranges(base, values, kind, id, above, room)
  local found, top, more = {}, 0, false
  for _, range in ipairs(ranges_of(base, kind, id)) do
    if #found >= room and range[1] > top then
      more = true
      break
    end
    for number = math.max(range[1], above + 1), range[1] + range[2] - 1 do
      found[#found + 1] = { number, range }
      top = math.max(top, number)
    end
  end
  table.sort(found, function(a, b) return a[1] < b[1] end)
  for i, child in ipairs(found) do
    -- children of several queues may have one number, and a cursor is no more than that
    if i > room and child[1] > found[i - 1][1] then return IN_SPANS + found[i - 1][1] end
    give_children(base, values, kind, id, child[2], { child[1] })
  end
  return more and IN_SPANS + top or 0
end

-- All of a kind.
local function whole_of(base, kind, id)
  local values = kind == 'faults' and redis.call('ZRANGE', base .. 'faults:' .. id, 0, -1)
    or redis.call(KINDS[kind][2], base .. kind .. ':' .. id)
  for _, range in ipairs(ranges_of(base, kind, id)) do
    local numbers = {}
    for i = 1, range[2] do numbers[i] = range[1] + i - 1 end
    give_children(base, values, kind, id, range, numbers)
  end
  return values
end

local function count_of(base, kind, id)
  local count = redis.call(KINDS[kind][1], base .. kind .. ':' .. id)
  for _, range in ipairs(ranges_of(base, kind, id)) do count = count + range[2] end
  return count
end

-- All of very many, a thousand a page. Spans come first: a child that leaves its range meanwhile is told twice rather than not at all.
local function page_of_all(base, kind, id, cursor)
  local key, values = base .. kind .. ':' .. id, {}
  if kind == 'faults' then
    values = redis.call('ZRANGE', key, cursor, cursor + MOST - 1)
    return #values < MOST and 0 or cursor + MOST, values
  end
  if cursor < SCANS then
    local following = KINDS[kind][4] and page_of_ranges(base, values, kind, id, math.max(cursor - IN_SPANS, 0), MOST) or 0
    return following > 0 and following or SCANS, values
  end
  local found = redis.call(KINDS[kind][3], key, cursor - SCANS, 'COUNT', MOST)
  local following = tonumber(found[1])
  return following > 0 and SCANS + following or 0, found[2]
end

-- Next cursor, or number, and values of one page.
local function page(base, kind, id, cursor, count)
  if count < 0 then return count_of(base, kind, id), {} end
  if count == 0 then
    if cursor == 0 and count_of(base, kind, id) <= MOST then return 0, whole_of(base, kind, id) end
    return page_of_all(base, kind, id, cursor)
  end
  local key = base .. kind .. ':' .. id
  if kind == 'faults' then return cursor + count, redis.call('ZRANGE', key, cursor, count - 1) end
  local values, above = {}, cursor - IN_SPANS
  if cursor < IN_SPANS then
    local found = redis.call(KINDS[kind][3], key, cursor, 'COUNT', count)
    if tonumber(found[1]) > 0 then return found[1], found[2] end
    values, above = found[2], 0
  end
  local room = count - (kind == 'children' and #values or #values / 2)
  if room <= 0 then return #ranges_of(base, kind, id) > 0 and IN_SPANS or 0, values end
  return page_of_ranges(base, values, kind, id, above, room), values
end

return function(keys, args)
  local base = keys[1]
  local ids, pages = cmsgpack.unpack(args[1]), cmsgpack.unpack(args[2])

  local out = {}
  for _, id in ipairs(ids) do
    for i = 1, #pages, 3 do
      local kind = pages[i]
      out[#out + 1], out[#out + 2] = page(base, kind, id, pages[i + 1], pages[i + 2])
    end
  end
  return out
end
