-- Server time, in microseconds.
local function read_time()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Milliseconds that a counter is kept after its state is equal to no state.
local GRACE = 1000
