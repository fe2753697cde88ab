-- Calls that only take and peek: the common case.
local plans

local function decide_many(at)
  plans = plans or multi_take()
  local verb, count, after = decode('>BB', call, at)
  local rest, takes, err = plans.read(after, count)
  if err then
    reply[#reply + 1] = err
    return rest
  elseif verb == TAKE then
    plans.take(takes)
  else
    plans.peek(takes)
  end
  plans.reply(takes)
  return rest
end

local function decide(call_keys, call_args)
  local at = begin_plans(call_keys, call_args)
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
end
