-- The calls that only take and peek: all that most nodes ever send.
local plans

local function decide_many(at)
  plans = plans or several()
  local verb, count, after = decode('>BB', call, at)
  local rest, takes, wrong = plans.read(after, count)
  if wrong then
    answer[#answer + 1] = wrong
    return rest
  elseif verb == TAKE then
    plans.take(takes)
  else
    plans.ask(takes)
  end
  plans.tell(takes)
  return rest
end

local at = read_limits()
while at <= #call do
  local verb, count, _, key, limit, cost, after = decode('>BBBI2I2I7', call, at)
  if count == 1 then
    decide_one(verb, key, limit, cost)
    at = after
  else
    at = decide_many(at)
  end
end
return finish()
