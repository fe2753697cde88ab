-- Lists which keys are in use. Returns 0 or 1 and the spec of an inline limit (or '') for each key. The first
-- argument has the algorithm letter of each key.

-- Returns whether a state is equal to no state. Not a field of the algorithms, because every deciding script would
-- have to create it.
local function expired(s)
  local algorithm = s.algorithm
  if algorithm == token_bucket then
    return s.at <= now and s.deficit - s.give * (now - s.at) <= 0
  elseif algorithm == fixed_window then
    return s.opened + s.length <= now
  elseif algorithm == calendar_window then
    return s.stop <= now
  elseif algorithm == sliding_counter then
    local start = window_start(s.last, s.length)
    local previous, current = clear_expired(start, s.length, s.previous, s.current)
    return previous == 0 and current == 0
  elseif algorithm == sliding_window then
    return not s.newest or s.newest + s.length <= now
  elseif algorithm == concurrency then
    return s.last <= now
  end
  return true
end

local function is_fresh(s)
  if s.since and s.till > now then
    return false
  end
  return (s.algorithm.unused and s.algorithm.unused(s)) or expired(s)
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
