-- Every node: the time, then for each its id and what is kept of it.
local all = redis.call('HGETALL', KEYS[1])
table.insert(all, 1, now)
return all
