-- All operations on counters: takes, peeks and every other verb.
local HOLD, PAUSE, RESET, RELEASE, RENEW, HOLDS = 5, 6, 7, 8, 9, 10
local apply_reservation

-- Formats of the extra value between the number of takes and the takes.
local extra_formats = { [DEBIT] = '>I7', [LEASE] = '>I7', [PAUSE] = '>I7', [HOLD] = '>c16', [RELEASE] = '>c16', [RENEW] = '>c16', [HOLDS] = '>c16' }

local function apply_all(takes, op, extra)
  for _, take in ipairs(takes) do
    take.wait, take.remaining, take.reset = step(take.state, take.limit, op, take.cost, extra)
    if op == REFUND then
      free(take.state.key)
    end
  end
end

local function pause(s, spec, length)
  local till = now + length
  if s.since then
    settle_pause(s)
    till = max(s.till, till)
  end
  s.since, s.till, s.spec, s.dirty = now, till, spec, true
  s.min_ttl = max(redis.call('PTTL', s.key) - GRACE, ceil((till - now) / 1000))
end

local function release_all(takes, permit)
  local released = 0
  for _, take in ipairs(takes) do
    if try(take.state, release, permit) == true then
      released = 1
    end
  end
  return released
end

-- Verbs with one integer as the reply.
local number_verbs = {
  [PAUSE] = function(takes, length)
    pause(takes[1].state, takes[1].limit.spec, length)
    -- Nodes must not spend leases of a paused key.
    free(takes[1].state.key)
    return 0
  end,
  [RELEASE] = release_all,
  [RENEW] = renew_all,
  [HOLDS] = holds_all,
}

local function apply(verb, takes, extra)
  if number_verbs[verb] then
    local number = number_verbs[verb](takes, extra)
    reply[#reply + 1] = plans.first_error(takes) or number
    return
  elseif verb == HOLD then
    plans.take(takes, extra)
  elseif verb == TAKE then
    plans.take(takes)
  elseif verb == PEEK then
    plans.peek(takes)
  else
    apply_all(takes, verb, extra)
  end
  plans.reply(takes)
end

-- Deletes the key, whatever its type. For a named key, this is also the first access.
local function reset(at)
  local _, number, _, _, after = decode('>BI2I2I7', call, at)
  local delete = are_named and redis.pcall or redis.call
  local deleted = delete('DEL', keys[number])
  if type(deleted) == 'table' then
    reply[#reply + 1] = unavailable(keys[number], deleted.err).error
    return after
  end
  opened[number], fetched[number] = nil, nil
  free(keys[number])
  reply[#reply + 1] = 0
  return after
end

-- Reads the amounts that a plan wants to lease, after its takes, and leases.
local function apply_lease(at, takes, hold)
  for _, take in ipairs(takes) do
    take.want, at = decode('>I7', call, at)
  end
  lease_all(takes, hold)
  if plans.first_error(takes) then
    return plans.reply(takes)
  end
  for _, take in ipairs(takes) do
    push(take.wait, take.remaining, take.reset)
    reply[#reply + 1] = take.granted
  end
end

local function apply_plan(at)
  local verb, count, after = decode('>BB', call, at)
  if verb == RESET then
    return reset(after)
  elseif verb >= RESERVE then
    apply_reservation = apply_reservation or reservations()
    return apply_reservation(verb, after, count)
  end
  local extra
  if extra_formats[verb] then
    extra, after = decode(extra_formats[verb], call, after)
  end
  local rest, takes, err = plans.read(after, count)
  if err then
    reply[#reply + 1] = err
  elseif verb == LEASE then
    apply_lease(rest, takes, extra)
  else
    apply(verb, takes, extra)
  end
  return verb == LEASE and rest + 7 * count or rest
end

local function operate(call_keys, call_args)
  local at = begin_plans(call_keys, call_args)
  freed = {}
  while at <= #call do
    local verb, count, _, key, limit, cost, after = decode('>BBBI2I2I7', call, at)
    if verb <= PEEK and count == 1 then
      decide_one(verb, key, limit, cost)
      at = after
    else
      at = apply_plan(at)
    end
  end
  finish()
  for subject in pairs(freed) do
    redis.call('PUBLISH', args[2], 's' .. subject)
  end
  return reply
end
