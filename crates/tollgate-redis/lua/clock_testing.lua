-- Test clock: the time is an argument. The grace is long because keys expire by the real clock.
local function read_time(args)
  return tonumber(args[3])
end

local GRACE = 100000000
