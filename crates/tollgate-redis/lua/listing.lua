-- Lists which keys are in use. Returns 0 or 1 and the spec of an inline limit (or '') for each key. The first
-- argument has the algorithm letter of each key.

-- Returns whether a state is equal to no state. The algorithms have `expired` only in programs that list keys,
-- because every other script would have to create it.
local function is_fresh(s)
  if s.since and s.till > now then
    return false
  end
  return (s.algorithm.unused and s.algorithm.unused(s)) or s.algorithm.expired(s)
end

local function list(call_keys, call_args)
  begin(call_keys, call_args)
  fetched = {}
  local reply = {}
  for number = 1, #keys do
    local algorithm = algorithms[string.sub(args[1], number, number)]
    local s = algorithm:open(number)
    -- An unreadable state is in use; reading its figures returns the error.
    local in_use = s.error or not is_fresh(s)
    reply[2 * number - 1] = in_use and 1 or 0
    reply[2 * number] = s.spec or ''
  end
  return reply
end
