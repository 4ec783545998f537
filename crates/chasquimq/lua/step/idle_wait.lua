-- idle_wait: the step behind an idle worker's wait (step), seen from outside.
-- Such a step is carried out when the wait ends, whenever that is. Where the worker has taken another step meanwhile, it is over: what it would take is
-- not asked for any more.
local Memo = require('memo')
local StepMemo = require('step_memo')

-- In the place of the time at which the next job is due, in the reply of such a step.
local OVER = -2

-- Ends what the step of this number would do. False when it was carried out before.
local function end_step(base, owner, number)
  local slot = Memo.key_of(base, owner, 'w')
  if Memo.is_known(redis.call('GET', slot), number) then return false end
  -- as step remembers that it took nothing; that of the other slot, which follows, tells the worker's slots
  Memo.remember_packed(slot, StepMemo.head(number, OVER, 0, 0, 0, 0) .. '\144\144')
  return true
end

return {
  end_step = end_step,
}
