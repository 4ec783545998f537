-- terms: what an add says of when its job may start: nil, nothing; when it expires (rules/expiry); or {that, 0 = never, its limits (rules/key_limits)}.
local Expiry = require('expiry')

-- When the job expires, and its limits; nil: it does not, it has none.
local function split(terms)
  if type(terms) ~= 'table' then return terms, nil end
  return terms[1] ~= 0 and terms[1] or nil, terms[2]
end

-- A job is added: notes them in its state fields.
local function note(queue, id, fields, terms)
  local expires
  expires, fields.kl = split(terms)
  Expiry.note(queue, id, fields, expires)
end

return {
  split = split,
  note = note,
}
