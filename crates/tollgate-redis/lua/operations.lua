-- Every call there is: takes and peeks, and what changes a key in other ways.
local HOLD, PAUSE, RESET, RELEASE, RENEW, HOLDS = 5, 6, 7, 8, 9, 10
local plans = several()
local loosened

-- What these verbs have between their count and their takes.
local extras = { [DEBIT] = '>I7', [PAUSE] = '>I7', [HOLD] = '>c16', [RELEASE] = '>c16', [RENEW] = '>c16', [HOLDS] = '>c16' }

-- Nodes that remember a refusal of this key's subject are to forget it. In a key the subject of nobody's
-- facts is a percent sign.
local function loosen(key)
  local subject = string.match(key, '{(.*)}')
  loosened[subject == '%' and '' or subject] = true
end

local function apply_all(takes, op, extra)
  for _, take in ipairs(takes) do
    take.wait, take.remaining, take.reset = step(take.state, take.limit, op, take.cost, extra)
    if op == REFUND then
      loosen(take.state.key)
    end
  end
end

local function pause(s, shape, length)
  local till = now + length
  if s.since then
    settle_pause(s)
    till = max(s.till, till)
  end
  s.since, s.till, s.shape, s.dirty = now, till, shape, true
  s.least = max(redis.call('PTTL', s.key) - GRACE, ceil((till - now) / 1000))
end

local function release_all(takes, permit)
  local released = 0
  for _, take in ipairs(takes) do
    if guarded(take.state, release, permit) == true then
      released = 1
    end
  end
  return released
end

-- Whether the permit has slots in use of all its keys: 1, else 0.
local function holds_all(takes, permit)
  for _, take in ipairs(takes) do
    if guarded(take.state, holds, permit) ~= true then
      return 0
    end
  end
  return 1
end

-- All or none of a permit's keys.
local function renew_all(takes, permit)
  if holds_all(takes, permit) == 0 then
    return -1
  end
  local first = huge
  for _, take in ipairs(takes) do
    local till = guarded(take.state, renew, permit)
    first = min(first, till)
  end
  return first
end

-- Verbs that are answered by one integer.
local single = {
  [PAUSE] = function(takes, length)
    pause(takes[1].state, takes[1].limit.shape, length)
    return 0
  end,
  [RELEASE] = release_all,
  [RENEW] = renew_all,
  [HOLDS] = holds_all,
}

local function apply(verb, takes, extra)
  if single[verb] then
    local number = single[verb](takes, extra)
    answer[#answer + 1] = plans.broken(takes) or number
    return
  elseif verb == HOLD then
    plans.take(takes, extra)
  elseif verb == TAKE then
    plans.take(takes)
  elseif verb == PEEK then
    plans.ask(takes)
  else
    apply_all(takes, verb, extra)
  end
  plans.tell(takes)
end

-- Whatever is there, of any type, is gone.
local function reset(at)
  local _, number, _, _, after = decode('>BI2I2I7', call, at)
  redis.call('DEL', keys[number])
  opened[number], fetched[number] = nil, nil
  loosen(keys[number])
  answer[#answer + 1] = 0
  return after
end

local function operate_one(at)
  local verb, count, after = decode('>BB', call, at)
  if verb == RESET then
    return reset(after)
  end
  local extra
  if extras[verb] then
    extra, after = decode(extras[verb], call, after)
  end
  local rest, takes, wrong = plans.read(after, count)
  if wrong then
    answer[#answer + 1] = wrong
  else
    apply(verb, takes, extra)
  end
  return rest
end

local function operate(call_keys, call_args)
  local at = begin_plans(call_keys, call_args)
  loosened = {}
  while at <= #call do
    local verb, count, _, key, limit, cost, after = decode('>BBBI2I2I7', call, at)
    if verb <= PEEK and count == 1 then
      decide_one(verb, key, limit, cost)
      at = after
    else
      at = operate_one(at)
    end
  end
  finish()
  for subject in pairs(loosened) do
    redis.call('PUBLISH', args[2], 's' .. subject)
  end
  return answer
end
