-- A node tells what it counted since it last did, and how it fares now: its id, both texts, for how many
-- milliseconds the first is kept and the second holds.
local function pulse(call_keys, call_args)
  begin(call_keys, call_args)
  local millis = math.floor(now / 1000)
  local oldest = string.format('%.0f', millis - tonumber(args[4]))
  redis.call('XADD', keys[1], 'MINID', '~', oldest, '*', 'node', args[1], 'pulse', args[2])
  redis.call('PEXPIRE', keys[1], args[4])
  redis.call('SET', keys[2], args[3], 'PX', args[5])
  return millis
end
