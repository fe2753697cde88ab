-- A packed call: limits, then plans. The reply is the time, then for each plan either three integers per take (wait
-- or -1 for never, remaining, time until full) or one error string (STALE, WRONGNODE and CROSSSLOT: see plan_reply.rs).
--
-- Plans are decided in order; each sees the effects of the plans before it. Each key is read once and written once,
-- at the end. An unreadable key fails only the plans that use it. A failed write fails the whole call: Redis
-- refuses the first write or none, so nothing was written.
local call, limits, opened, reply

local function read_limits()
  local count, at = decode('>I2', call)
  for number = 1, count do
    local letter, spec
    letter, at = decode('>c1', call, at)
    local l
    l, at = algorithms[letter].limit(call, at)
    spec, at = decode('>Bc0', call, at)
    if spec ~= '' then
      l.spec = spec
    end
    limits[number] = l
  end
  return at
end

-- Reads all string keys with one MGET, at a third of the cost of single GETs. Named keys may have several slots.
local function fetch()
  fetched = {}
  if #keys > 1 and not are_named and limits[1] and not limits[1].algorithm.is_list then
    fetched = redis.call('MGET', unpack(keys))
  end
end

-- Begins a call. Returns the position of its first plan.
local function begin_plans(call_keys, call_args)
  begin(call_keys, call_args)
  call, limits, opened, reply = args[1], {}, {}, { now }
  local at = read_limits()
  fetch()
  return at
end

local function open(number, algorithm)
  local s = algorithm:open(number)
  opened[number] = s
  return s
end

local function push(wait, remaining, reset)
  local n = #reply
  if wait == huge then
    wait = -1
  end
  reply[n + 1], reply[n + 2], reply[n + 3] = wait, remaining, reset
end

-- Decides a take or peek of one key, the most common plan, without a table per take.
local function decide_one(verb, key, number, cost)
  local l = limits[number]
  local s = opened[key] or open(key, l.algorithm)
  if s.error or l.stale then
    reply[#reply + 1] = s.error or 'STALE'
    return
  end
  local wait, remaining, reset = step(s, l, verb, cost)
  if s.error then
    reply[#reply + 1] = s.error
  else
    push(wait, remaining, reset)
  end
end

local function finish()
  for _, s in pairs(opened) do
    if s.dirty and not s.error then
      s.algorithm.write(s)
    end
  end
  return reply
end
