-- Exact integer arithmetic: doubles below 2^53. Mirrors arithmetic.rs.
local encode, decode, floor, ceil, max, min, huge
local MAX_EXACT = 2 ^ 53

-- Time, KEYS and ARGV of the current call. A script is loaded for one call, a function for many: `begin` sets them.
local now, keys, args

local function begin(call_keys, call_args)
  -- A function library is loaded before Lua's own libraries are available, so these are set here.
  encode, decode = struct.pack, struct.unpack
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  keys, args, now = call_keys, call_args, read_time(call_args)
end

-- Operations on a key. A wait is 0, a number of microseconds, or `huge` for never.
local TAKE, PEEK, REFUND, DEBIT = 1, 2, 3, 4

-- A count after a forced debit: clamped at the limit, never lowered by it.
local function debited(count, cost, limit)
  return max(count, min(limit, count + cost))
end
