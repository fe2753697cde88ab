-- Permits: slots given back and kept longer, also beneath a pause. As in concurrency.rs and state.rs.

-- Where the permit stands in the list, each place that of its permit element.
local function held_places(s, permit)
  if s.error or not s.kept then
    return {}
  end
  local places = redis.call('LPOS', s.key, permit, 'COUNT', 0)
  return places
end

-- Whether the permit has a slot in use.
local function holds(s, permit)
  for _, place in ipairs(held_places(s, permit)) do
    local _, till = decode('>I7I7', redis.call('LINDEX', s.key, place + 1))
    if till > now then
      return true
    end
  end
  return false
end

-- Takes the permit's slots out of the list and gives them.
local function removed(s, permit)
  local slots = {}
  for _, place in ipairs(held_places(s, permit)) do
    local since, till, cost = decode('>I7I7I7', redis.call('LINDEX', s.key, place + 1))
    slots[#slots + 1] = { permit = permit, since = since, till = till, cost = cost }
    s.total = s.total - cost
    redis.call('LSET', s.key, place, '')
    redis.call('LSET', s.key, place + 1, '')
  end
  redis.call('LREM', s.key, 2 * #slots, '')
  s.last = 0
  if redis.call('LLEN', s.key) > 1 then
    local _, till = decode('>I7I7', redis.call('LINDEX', s.key, -1))
    s.last = till
  end
  return slots
end

-- How long the key matters once its slots have changed by a permit.
local function remember_permits(s)
  s.dirty = true
  s.reset = max(s.last - now, (s.till or 0) - now, 0)
end

local function release(s, permit)
  if not holds(s, permit) then
    return false
  end
  slots_settle(s, huge)
  slots_drop(s)
  removed(s, permit)
  remember_permits(s)
  if s.last == 0 then
    slots_clear(s)
    if s.since and s.till <= now then
      s.since, s.till = nil, nil
    end
  end
  return true
end

-- When the first of the permit's slots returns, after each has got its own length once more.
local function renew(s, permit)
  slots_settle(s, huge)
  slots_drop(s)
  local first = huge
  for _, one in ipairs(removed(s, permit)) do
    one.till, one.since = one.till + now - one.since, now
    first = min(first, one.till)
    slots_insert(s, one)
  end
  s.newest = now
  remember_permits(s)
  return first
end
