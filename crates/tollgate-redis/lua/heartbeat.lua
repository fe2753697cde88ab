-- Registers a node. Arguments: node id, lifetime in microseconds, record. Removes nodes without a heartbeat for a
-- day. The directory expires a day after the last heartbeat.
local function heartbeat(call_keys, call_args)
  begin(call_keys, call_args)
  local day = 86400 * 1000000
  redis.call('HSET', keys[1], args[1], encode('>I7I7', now, tonumber(args[2])) .. args[3])
  local all = redis.call('HGETALL', keys[1])
  for index = 1, #all, 2 do
    local seen = #all[index + 1] >= 14 and decode('>I7', all[index + 1]) or 0
    if seen + day < now then
      redis.call('HDEL', keys[1], all[index])
    end
  end
  redis.call('PEXPIRE', keys[1], day / 1000)
  return now
end
