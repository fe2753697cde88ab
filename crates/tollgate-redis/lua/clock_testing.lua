-- Time for tests: as the caller says. Keys outlive it, because only the real clock makes them expire.
local now = tonumber(ARGV[3])
local GRACE = 100000000
