-- Exact integers: doubles below 2^53, as in Rust's arithmetic.rs.
local encode, decode, floor, ceil, max, min, huge
local MAX_EXACT = 2 ^ 53

-- The call that is being answered, by its keys and arguments, and its time. A script is loaded for one call,
-- a function for many: so what belongs to a call is set when it begins.
local now, keys, args

local function begin(call_keys, call_args)
  -- Where a library of functions is loaded, Lua's own are not there yet.
  encode, decode = struct.pack, struct.unpack
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  keys, args, now = call_keys, call_args, read_time(call_args)
end

-- What is asked of a key. A wait is 0, microseconds, or huge for never.
local TAKE, PEEK, REFUND, DEBIT = 1, 2, 3, 4

-- What a forced debit makes of a counter: clamped at the limit, but never lowered by it.
local function debited(count, cost, limit)
  return max(count, min(limit, count + cost))
end
