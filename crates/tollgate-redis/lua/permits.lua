-- Permits: release and renew slots, also of a paused key. Mirrors concurrency.rs and state.rs.

-- Returns the list indexes of a permit's elements.
local function positions(s, permit)
  if s.error or not s.kept then
    return {}
  end
  local found = redis.call('LPOS', s.key, permit, 'COUNT', 0)
  return found
end

-- Returns whether the permit holds an unexpired slot.
local function holds(s, permit)
  for _, position in ipairs(positions(s, permit)) do
    local _, till = decode('>I7I7', redis.call('LINDEX', s.key, position + 1))
    if till > now then
      return true
    end
  end
  return false
end

-- Removes the permit's slots from the list and returns them.
local function remove(s, permit)
  local slots = {}
  for _, position in ipairs(positions(s, permit)) do
    local since, till, cost = decode('>I7I7I7', redis.call('LINDEX', s.key, position + 1))
    slots[#slots + 1] = { permit = permit, since = since, till = till, cost = cost }
    s.total = s.total - cost
    redis.call('LSET', s.key, position, '')
    redis.call('LSET', s.key, position + 1, '')
  end
  redis.call('LREM', s.key, 2 * #slots, '')
  s.last = 0
  if redis.call('LLEN', s.key) > 1 then
    local _, till = decode('>I7I7', redis.call('LINDEX', s.key, -1))
    s.last = till
  end
  return slots
end

-- Sets the reset time after the slots of a permit have changed.
local function update_reset(s)
  s.dirty = true
  s.reset = max(s.last - now, (s.till or 0) - now, 0)
end

local function release(s, permit)
  if not holds(s, permit) then
    return false
  end
  slots_settle(s, huge)
  slots_drop(s)
  remove(s, permit)
  update_reset(s)
  if s.last == 0 then
    slots_clear(s)
    if s.since and s.till <= now then
      s.since, s.till = nil, nil
    end
  end
  return true
end

-- Extends each slot of the permit by its own length from now. Returns the earliest expiry.
local function renew(s, permit)
  slots_settle(s, huge)
  slots_drop(s)
  local first = huge
  for _, slot in ipairs(remove(s, permit)) do
    slot.till, slot.since = slot.till + now - slot.since, now
    first = min(first, slot.till)
    slots_insert(s, slot)
  end
  s.newest = now
  update_reset(s)
  return first
end
