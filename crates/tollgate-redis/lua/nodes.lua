-- Returns the time, then the id and the record of each node.
local function nodes(call_keys, call_args)
  begin(call_keys, call_args)
  local all = redis.call('HGETALL', keys[1])
  table.insert(all, 1, now)
  return all
end
