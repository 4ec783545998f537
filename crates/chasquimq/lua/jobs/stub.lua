-- stub: what stands in the log for a frame that lies apart (jobs/frame): timestamp, options, bytes of the frame.

-- A stub has no more bytes; longer options are never apart (src/add/batch.rs).
local MOST = 2048

-- Bytes of the frame that lies apart; nil when this is no stub of one.
local function bytes(blob)
  if #blob > MOST then return nil end
  local ok, _, _, _, count = pcall(cmsgpack.unpack_limit, blob, 3, 0)
  return ok and type(count) == 'number' and count or nil
end

return {
  bytes = bytes,
}
