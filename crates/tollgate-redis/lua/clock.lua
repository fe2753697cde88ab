-- Time: the server's own, read once a call, in microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- A counter is kept for a second longer than it matters.
local function lifetime(reset)
  return math.ceil(reset / 1000) + 1000
end
