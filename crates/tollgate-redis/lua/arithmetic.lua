-- Exact integer arithmetic: doubles below 2^53. Mirrors arithmetic.rs.
local encode, decode, floor, ceil, max, min, huge
local MAX_EXACT = 2 ^ 53

-- Time, keys and ARGV of the current call. A script is loaded for one call, a function for many: `begin` sets them.
local now, keys, args

-- Whether the keys are arguments, from the fourth, instead of KEYS: a call to one node of a cluster, whose keys have
-- several slots. Redis then does not check before the call that the node has them. Only commands with one key may
-- access them; after one with keys of several slots, Valkey 9 refuses the commands of every later script.
local are_named

local function begin(call_keys, call_args)
  -- A function library is loaded before Lua's own libraries are available, so these are set here.
  encode, decode = struct.pack, struct.unpack
  floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
  keys, args, now = call_keys, call_args, read_time(call_args)
  are_named = #call_keys == 0
  if are_named then
    keys = {}
    for number = 4, #call_args do
      keys[number - 3] = call_args[number]
    end
  end
end

-- Operations on a key. A wait is 0, a number of microseconds, or `huge` for never.
local TAKE, PEEK, REFUND, DEBIT, LEASE = 1, 2, 3, 4, 11

-- A count after a forced debit: clamped at the limit, never lowered by it.
local function debited(count, cost, limit)
  return max(count, min(limit, count + cost))
end
