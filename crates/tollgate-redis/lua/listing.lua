-- Which of these keys are in use: for each 0 or 1, and what an inline limit was made of.
-- The first argument has the letter of each key.

-- Whether it has become equal to "never seen". Here and not with the algorithms, because whatever stands there is
-- made anew by every script that decides.
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
    local previous, current = unexpired(start, s.length, s.previous, s.current)
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
  local told = {}
  for number = 1, #keys do
    local algorithm = algorithms[string.sub(args[1], number, number)]
    local s = algorithm:open(number)
    -- What cannot be read is in use, whatever it is: its figures will tell why not.
    local in_use = s.error or not is_fresh(s)
    told[2 * number - 1] = in_use and 1 or 0
    told[2 * number] = s.shape or ''
  end
  return told
end
