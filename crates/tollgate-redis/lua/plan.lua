-- A call: limits, then plans, packed. Answered by the time, then three integers a take (the wait or -1
-- for never, what remains, the time until full) or, for a plan that could not be decided, one string.
--
-- Plans are decided in order, each seeing what those before it did. Keys are read once and written once,
-- at the end. A key that cannot be read fails the plans that need it and no others; a write that fails
-- fails the whole call, and since Redis refuses the first write or none, nothing has been written then.
local call, limits, opened, answer

local function read_limits()
  local count, at = decode('>I2', call)
  for number = 1, count do
    local letter, shape
    letter, at = decode('>c1', call, at)
    local l
    l, at = algorithms[letter].limit(call, at)
    shape, at = decode('>Bc0', call, at)
    if shape ~= '' then
      l.shape = shape
    end
    limits[number] = l
  end
  return at
end

-- Keys that are strings are read together, which costs a third of reading one after the other.
local function fetch()
  fetched = {}
  if #keys > 1 and limits[1] and not limits[1].algorithm.is_list then
    fetched = redis.call('MGET', unpack(keys))
  end
end

-- Begins a call; where its plans begin.
local function begin_plans(call_keys, call_args)
  begin(call_keys, call_args)
  call, limits, opened, answer = args[1], {}, {}, { now }
  local at = read_limits()
  fetch()
  return at
end

local function open(number, algorithm)
  local s = algorithm:open(number)
  opened[number] = s
  return s
end

local function tell(wait, remaining, reset)
  local n = #answer
  if wait == huge then
    wait = -1
  end
  answer[n + 1], answer[n + 2], answer[n + 3] = wait, remaining, reset
end

-- Takes and peeks of one counter, which most plans are, without a table each.
local function decide_one(verb, key, number, cost)
  local l = limits[number]
  local s = opened[key] or open(key, l.algorithm)
  if s.error or l.stale then
    answer[#answer + 1] = s.error or 'STALE'
    return
  end
  local wait, remaining, reset = step(s, l, verb, cost)
  if s.error then
    answer[#answer + 1] = s.error
  else
    tell(wait, remaining, reset)
  end
end

local function finish()
  for _, s in pairs(opened) do
    if s.dirty and not s.error then
      s.algorithm.write(s)
    end
  end
  return answer
end
