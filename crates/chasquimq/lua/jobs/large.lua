-- large: data of more than 256 KiB (2 MiB where only plain jobs are added), results of more than 4 KiB, and data of some 16 KiB and more of a job that
-- leaves its frame for a record. Lua copies every text several times, so these lie apart from what scripts read, and are read by plain commands of the
-- caller's. Only records have any; of children, the results that their parents know lie there, too.
-- Why: 300 results of 250 KB that ended at once, and went through scripts, kept the server for 1.2 s.
--   large  hash: d<id> a job's data, r<id> its result, JSON texts. Its state fields tell the bytes of each:
--     ld   of its data, whose place in the body is empty. It stays apart, however short it becomes.
--     lr   of its result; there is no rv then

-- Puts a job's data apart. Gives their bytes, which its state fields tell (ld).
local function put_data(queue, id, data)
  redis.call('HSET', queue.base .. 'large', 'd' .. id, data)
  return #data
end

-- A job that ended in this state is to run again. Why one failed that completed later stays.
local function forget_end(queue, id, fields, state)
  fields.fo, fields.po, fields.ex = nil, nil, nil
  if state == 'failed' then
    -- it has stack traces still
    fields.tr, fields.fr = fields.fr and '' or fields.tr, nil
  end
  if fields.lr then redis.call('HDEL', queue.base .. 'large', 'r' .. id) end
  fields.rv, fields.lr = nil, nil
end

return {
  put_data = put_data,
  forget_end = forget_end,
}
