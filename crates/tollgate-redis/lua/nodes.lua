-- Every node: the time, then for each its id and what is kept of it.
local function nodes(call_keys, call_args)
  begin(call_keys, call_args)
  local all = redis.call('HGETALL', keys[1])
  table.insert(all, 1, now)
  return all
end
