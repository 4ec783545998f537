-- list_children: no change. Children that a job has or had, a bounded step a call. Kinds come in the order in which a child goes from one to the
-- next, so that one that does so meanwhile is told twice rather than not at all.
-- KEYS    base (also: children:<id> processed:<id> ignored:<id> faults:<id> spans:<id> returned:<id>)
-- ARGV    id, ended (1: also those that it waits for no more), kind (number of the first one to list, from 1), cursor (of that kind; 0 at
--         first; of faults a rank)
-- RETURNS {kind of the next step (0 = done), its cursor, {ranges (jobs/sibling_ranges), keys} that it waits for, {the same} that have ended}
-- ERRORS  none      EVENTS none      COST O(1000 children, and ranges)
-- SOURCE  none
-- FLAGS   no-writes

return function(keys, args)
  local base = keys[1]
  local id, ended, kind, cursor = args[1], args[2], tonumber(args[3]), args[4]
  local ROOM = 1000
  -- How each kind is read: what lists it, whether values come along, whether it is of ranges.
  local KINDS = {
    { 'SMEMBERS', 'spans:', 1 },
    { 'SSCAN', 'children:', 1 },
    { 'HKEYS', 'returned:', 1 },
    { 'HSCAN', 'processed:', 2 },
    { 'HSCAN', 'ignored:', 2 },
    { 'ZRANGE', 'faults:', 1 },
  }
  local last = ended == '1' and #KINDS or 2

  local ranges, children, listed = { {}, {} }, { {}, {} }, 0
  while kind <= last and listed < ROOM do
    local how, width, part = KINDS[kind][1], KINDS[kind][3], kind > 2 and 2 or 1
    local key = base .. KINDS[kind][2] .. id
    local found, into
    if how == 'SMEMBERS' or how == 'HKEYS' then
      found, into, cursor = redis.call(how, key), ranges[part], '0'
    elseif how == 'ZRANGE' then
      found, into = redis.call(how, key, cursor, cursor + ROOM - 1), children[part]
      cursor = #found < ROOM and '0' or string.format('%d', cursor + ROOM)
    else
      local page = redis.call(how, key, cursor, 'COUNT', ROOM)
      found, into, cursor = page[2], children[part], page[1]
    end
    for i = 1, #found, width do into[#into + 1] = found[i] end
    listed = listed + #found / width
    if cursor == '0' then kind = kind + 1 end
  end
  return { kind <= last and kind or 0, cursor, { ranges[1], children[1] }, { ranges[2], children[2] } }
end
