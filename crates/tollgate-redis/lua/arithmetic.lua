-- Exact integers: doubles below 2^53, as in Rust's arithmetic.rs.
local encode, decode = struct.pack, struct.unpack
local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local MAX_EXACT = 2 ^ 53

-- What is asked of a key. A wait is 0, microseconds, or huge for never.
local TAKE, PEEK, REFUND, DEBIT = 1, 2, 3, 4

-- What a forced debit makes of a counter: clamped at the limit, but never lowered by it.
local function debited(count, cost, limit)
  return max(count, min(limit, count + cost))
end
