-- large: data of more than 256 KiB and results of more than 4 KiB. Lua copies every text several times, so these lie apart from what scripts
-- read, and are read by plain commands of the caller's. Only records have any; of children, the results that their parents know lie there, too.
-- Why: 300 results of 250 KB that ended at once, and went through scripts, kept the server for 1.2 s.
--   large  hash: d<id> a job's data, r<id> its result, JSON texts. Its vitals tell the bytes of each:
--     ld   of its data, whose place in the body is empty. It stays apart, however short it becomes.
--     lr   of its result; there is no rv then

-- A job that ended in this state is to run again. Why one failed that completed later stays.
local function forget_end(queue, id, vitals, state)
  vitals.fo, vitals.po = nil, nil
  if state == 'failed' then
    -- it has stack traces still
    vitals.tr, vitals.fr = vitals.fr and '' or vitals.tr, nil
  end
  if vitals.lr then redis.call('HDEL', queue.base .. 'large', 'r' .. id) end
  vitals.rv, vitals.lr = nil, nil
end

return {
  forget_end = forget_end,
}
