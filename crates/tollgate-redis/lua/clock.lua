-- Time: the server's own, in microseconds.
local function read_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- For how many milliseconds longer than it matters a counter is kept.
local GRACE = 1000
