-- A token bucket, stored as the time at which it is full. ARGV: microseconds per token, burst,
-- cost.
-- Returns the wait (0 if allowed), the remaining tokens and the time until full; times in
-- microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = tonumber(redis.call('GET', KEYS[1])) or now
if full < now then
  full = now
end
local after = full + cost * interval
local wait = after - burst * interval - now
if wait > 0 then
  return { wait, math.floor(burst - (full - now) / interval), full - now }
end
redis.call('SET', KEYS[1], after, 'PX', math.ceil((after - now) / 1000))
return { 0, math.floor(burst - (after - now) / interval), after - now }
