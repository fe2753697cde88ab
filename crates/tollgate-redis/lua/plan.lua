-- A call: limits, then plans, packed. Answered by the time, then three integers a take (the wait or -1
-- for never, what remains, the time until full) or, for a plan that could not be decided, one string.
--
-- Plans are decided in order, each seeing what those before it did. Keys are read once and written once,
-- at the end. A key that cannot be read fails the plans that need it and no others; a write that fails
-- fails the whole call, and since Redis refuses the first write or none, nothing has been written then.
local call = ARGV[1]
local limits, opened, answer = {}, {}, { now }

local function read_limits()
  local count, at = decode('>I2', call)
  for number = 1, count do
    local letter, shape
    letter, at = decode('>c1', call, at)
    local algorithm = algorithms[letter]
    local l
    l, at = algorithm.limit(call, at)
    shape, at = decode('>Bc0', call, at)
    l.algorithm = algorithm
    if shape ~= '' then
      l.shape = shape
    end
    limits[number] = l
  end
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

-- A plan's takes, or why it cannot be decided.
local function read_takes(at, count)
  local takes, wrong = {}
  for number = 1, count do
    local take = {}
    local key, limit
    take.mode, key, limit, take.cost, at = decode('>BI2I2I7', call, at)
    take.limit = limits[limit]
    take.state = opened[key] or open(key, take.limit.algorithm)
    if take.limit.stale then
      wrong = 'STALE'
    end
    wrong = wrong or take.state.error
    takes[number] = take
  end
  return at, takes, wrong
end

-- Whether a take is to happen: every enforced one passes, and so does every one of its own group.
local function passes(take, takes)
  for _, other in ipairs(takes) do
    if (other.mode == 0 or other.mode == take.mode) and other.wait ~= 0 then
      return false
    end
  end
  return true
end

local function ask_all(takes)
  for _, take in ipairs(takes) do
    take.wait, take.remaining, take.reset = step(take.state, take.limit, PEEK, take.cost)
  end
end

-- First asks every key, then takes from all of them or from none.
local function take_all(takes, lease)
  ask_all(takes)
  local passing = {}
  for number, take in ipairs(takes) do
    passing[number] = passes(take, takes)
  end
  for number, take in ipairs(takes) do
    if passing[number] then
      take.wait, take.remaining, take.reset = step(take.state, take.limit, TAKE, take.cost, lease)
    end
  end
end

local function tell_all(takes)
  for _, take in ipairs(takes) do
    tell(take.wait, take.remaining, take.reset)
  end
end

-- Takes and peeks of one counter, which most plans are, without a table each.
local function decide_one(verb, key, number, cost)
  local l = limits[number]
  local s = opened[key] or open(key, l.algorithm)
  if s.error or l.stale then
    answer[#answer + 1] = s.error or 'STALE'
  else
    tell(step(s, l, verb, cost))
  end
end

local function decide_many(at)
  local verb, count, after = decode('>BB', call, at)
  local rest, takes, wrong = read_takes(after, count)
  if wrong then
    answer[#answer + 1] = wrong
  else
    if verb == TAKE then
      take_all(takes)
    else
      ask_all(takes)
    end
    tell_all(takes)
  end
  return rest
end

local function finish()
  for _, s in pairs(opened) do
    if s.dirty then
      s.algorithm.write(s)
    end
  end
  return answer
end
