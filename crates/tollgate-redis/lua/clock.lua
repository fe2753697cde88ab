-- Time: the server's own, read once a call, in microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- For how many milliseconds longer than it matters a counter is kept.
local GRACE = 1000
