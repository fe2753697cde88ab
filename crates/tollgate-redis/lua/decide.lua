-- The calls that only take and peek: all that most nodes ever send.
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
