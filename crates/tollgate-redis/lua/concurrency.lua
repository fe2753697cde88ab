-- Concurrency. Mirrors concurrency.rs. State: a list. The first element is (total, newest). Each slot has two
-- elements, the permit and (since, till, cost), ordered by expiry.
-- `kept` is true if the list exists in Redis.
local concurrency = { is_list = true }
local NO_PERMIT = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

function concurrency.limit(call, at)
  local count, ttl, after = decode('>I7I7', call, at)
  return { algorithm = concurrency, spec = nil, count = count, ttl = ttl }, after
end

function concurrency.open(_, number)
  local key = keys[number]
  local s = {
    key = key, algorithm = concurrency, dirty = false, reset = 0,
    total = 0, newest = 0, first = 0, last = 0, kept = false, head = false,
    expired = nil, freed = nil,
  }
  local head = redis.pcall('LRANGE', key, 0, 2)
  if head.err then
    return unavailable(key, head.err)
  elseif not head[1] then
    return s
  elseif not read_extension(s, head[1], 14) or #head == 2 or (head[3] and #head[3] ~= 21) then
    return unreadable(key)
  end
  s.kept, s.head = true, head[1]
  s.total, s.newest = decode('>I7I7', head[1])
  if head[3] then
    local last = redis.call('LINDEX', key, -1)
    if #last ~= 21 then
      return unreadable(key)
    end
    local _, till = decode('>I7I7', last)
    s.last = till
    _, s.first = decode('>I7I7', head[3])
  end
  return s
end

local function slots_head(s)
  return encode('>I7I7', s.total, s.newest) .. extension(s)
end

-- Calls `visit` with the expiry and the cost of each slot after the first `number`, until it returns true. Reads about
-- as many slots as it visits.
local function visit_slots(s, number, visit)
  local size = 4
  repeat
    local elements = redis.call('LRANGE', s.key, 2 * number + 1, 2 * (number + size))
    for index = 2, #elements, 2 do
      local _, till, cost = decode('>I7I7I7', elements[index])
      if visit(till, cost) then
        return
      end
    end
    local is_end = #elements < 2 * size
    number, size = number + size, min(2 * size, 256)
  until is_end
end

-- Returns the number of expired slots and their total cost, which `s` keeps until slots are removed.
local function slots_expired(s)
  if not s.expired then
    local number, freed = 0, 0
    if s.last > 0 and s.first <= now then
      visit_slots(s, 0, function(till, cost)
        if till > now then
          return true
        end
        number, freed = number + 1, freed + cost
      end)
    end
    s.expired, s.freed = number, freed
  end
  return s.expired, s.freed
end

local function slots_used(s)
  local _, freed = slots_expired(s)
  return s.total - freed
end

-- Removes every slot. Only a pause may remain.
local function slots_clear(s)
  s.total, s.last, s.expired, s.freed = 0, 0, 0, 0
  clear_list(s)
end

local function slots_drop(s)
  local number, freed = slots_expired(s)
  if number == 0 then
    return
  end
  s.total, s.expired, s.freed, s.dirty = s.total - freed, 0, 0, true
  if s.last <= now then
    return slots_clear(s)
  end
  -- The last expired element becomes the head.
  s.head = slots_head(s)
  redis.call('LTRIM', s.key, 2 * number, -1)
  redis.call('LSET', s.key, 0, s.head)
end

local function slots_all(s)
  local slots = {}
  if s.kept then
    local elements = redis.call('LRANGE', s.key, 1, -1)
    for index = 1, #elements, 2 do
      local since, till, cost = decode('>I7I7I7', elements[index + 1])
      slots[#slots + 1] = { permit = elements[index], since = since, till = till, cost = cost }
    end
  end
  return slots
end

local function slots_append(s, slots)
  local elements = {}
  for _, slot in ipairs(slots) do
    elements[#elements + 1] = slot.permit
    elements[#elements + 1] = encode('>I7I7I7', slot.since, slot.till, slot.cost)
  end
  for first = 1, #elements, 1000 do
    redis.call('RPUSH', s.key, unpack(elements, first, min(first + 999, #elements)))
  end
end

-- Repairs slots that were taken after now, after the clock has stepped back. Any slot may be one of them.
local function slots_rewind(s)
  local slots = slots_all(s)
  for _, slot in ipairs(slots) do
    if slot.since > now then
      slot.till, slot.since = slot.till - (slot.since - now), now
    end
  end
  table.sort(slots, function(a, b)
    return a.till < b.till
  end)
  s.newest, s.expired, s.dirty = now, nil, true
  if #slots > 0 then
    clear_list(s)
    slots_append(s, slots)
    s.first, s.last = slots[1].till, slots[#slots].till
  end
end

-- Shortens slots that expire after `latest`: the last ones, which stay the last ones.
local function slots_shorten(s, latest)
  local number, slots, size = 0, {}, 4
  repeat
    local elements = redis.call('LRANGE', s.key, -2 * (number + size), -1 - 2 * number)
    local is_end = #elements < 2 * size
    for index = #elements, 2, -2 do
      local _, till, cost = decode('>I7I7I7', elements[index])
      if till <= latest then
        is_end = true
        break
      end
      number = number + 1
      slots[number] = { permit = elements[index - 1], since = now, till = latest, cost = cost }
    end
    size = min(2 * size, 256)
  until is_end
  redis.call('LTRIM', s.key, 0, -1 - 2 * number)
  for index = 1, floor(number / 2) do
    slots[index], slots[number + 1 - index] = slots[number + 1 - index], slots[index]
  end
  slots_append(s, slots)
  s.newest, s.last, s.dirty = now, latest, true
end

-- Repairs slots that were taken after now or expire after `latest`.
local function slots_settle(s, latest)
  if s.newest > now then
    slots_rewind(s)
  end
  if s.last > latest then
    slots_shorten(s, latest)
  end
end

-- Inserts a slot that expires before the last one.
local function slots_insert_before(s, slot, data)
  -- `low` slots expire at the same time or earlier, `high` is the number of a later one.
  local low, high = 0, (redis.call('LLEN', s.key) - 1) / 2
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    local _, till = decode('>I7I7', redis.call('LINDEX', s.key, 2 * middle))
    if till <= slot.till then
      low = middle
    else
      high = middle
    end
  end
  -- Redis inserts before a value, so the later slot has a unique one meanwhile.
  local index = 2 * high - 1
  local permit = redis.call('LINDEX', s.key, index)
  redis.call('LSET', s.key, index, '')
  redis.call('LINSERT', s.key, 'BEFORE', '', slot.permit)
  redis.call('LINSERT', s.key, 'BEFORE', '', data)
  redis.call('LSET', s.key, index + 2, permit)
end

local function slots_insert(s, slot)
  s.newest = max(s.newest, slot.since)
  local data = encode('>I7I7I7', slot.since, slot.till, slot.cost)
  s.total, s.dirty = s.total + slot.cost, true
  if slot.till < s.last then
    return slots_insert_before(s, slot, data)
  end
  s.last = slot.till
  if s.kept then
    redis.call('RPUSH', s.key, slot.permit, data)
  else
    s.kept, s.head = true, slots_head(s)
    redis.call('RPUSH', s.key, s.head, slot.permit, data)
  end
end

local function slots_wait(s, l, cost)
  if cost > l.count then
    return huge
  end
  local room, used = l.count - cost, slots_used(s)
  if cost == 0 or used <= room then
    return 0
  end
  local last
  visit_slots(s, slots_expired(s), function(till, slot_cost)
    used, last = used - slot_cost, till
    return used <= room
  end)
  return last - now
end

-- The longest time for which a reservation holds its slots, while it takes them.
local hold_ttl

-- `extra` is the permit of a take or the age of a debit.
function concurrency.step(s, l, op, cost, extra)
  -- A slot with a longer ttl than the current one, perhaps set by mistake, must not block others until then.
  slots_settle(s, now + l.ttl)
  local wait = 0
  if op <= PEEK then
    wait = slots_wait(s, l, cost)
    if op == TAKE and wait == 0 and cost > 0 then
      slots_drop(s)
      slots_insert(s, { permit = extra or NO_PERMIT, since = now, till = now + min(l.ttl, hold_ttl or l.ttl), cost = cost })
    end
  elseif op == DEBIT then
    cost = min(cost, max(0, l.count - slots_used(s)))
    if extra < l.ttl and cost > 0 then
      local since = max(0, now - extra)
      slots_drop(s)
      slots_insert(s, { permit = NO_PERMIT, since = since, till = since + l.ttl, cost = cost })
    end
  end
  return wait, max(0, l.count - slots_used(s)), max(0, s.last - now)
end

function concurrency.write(s)
  write_list(s, slots_head(s), s.last == 0)
end

algorithms.n = concurrency

-- Only in programs that list keys:
function concurrency.expired(s)
  return s.last <= now
end
