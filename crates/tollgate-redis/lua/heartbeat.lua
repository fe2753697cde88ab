-- A node tells that it is there: ARGV its id, for how long that holds, and what it says of itself.
-- Nodes that were not heard of for a day are forgotten, and so is the whole directory without nodes.
local DAY = 86400 * 1000000

redis.call('HSET', KEYS[1], ARGV[1], encode('>I7I7', now, tonumber(ARGV[2])) .. ARGV[3])
local all = redis.call('HGETALL', KEYS[1])
for index = 1, #all, 2 do
  local seen = #all[index + 1] >= 14 and decode('>I7', all[index + 1]) or 0
  if seen + DAY < now then
    redis.call('HDEL', KEYS[1], all[index])
  end
end
redis.call('PEXPIRE', KEYS[1], DAY / 1000)
return now
