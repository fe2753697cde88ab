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
    total = 0, newest = 0, last = 0, kept = false, head = false,
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
  end
  return s
end

local function slots_head(s)
  return encode('>I7I7', s.total, s.newest) .. extension(s)
end

-- Returns since, till and cost of the slot with this number, from 1; nothing after the last slot.
local function slot_at(s, number)
  local v = redis.call('LINDEX', s.key, 2 * number)
  if v then
    return decode('>I7I7I7', v)
  end
end

-- Returns the number of expired slots and their total cost.
local function slots_expired(s)
  local number, freed = 0, 0
  if s.last == 0 then
    return 0, 0
  end
  while true do
    local _, till, cost = slot_at(s, number + 1)
    if not till or till > now then
      return number, freed
    end
    number, freed = number + 1, freed + cost
  end
end

local function slots_used(s)
  local _, freed = slots_expired(s)
  return s.total - freed
end

-- Removes every slot. Only a pause may remain.
local function slots_clear(s)
  s.total, s.last = 0, 0
  clear_list(s)
end

local function slots_drop(s)
  local number, freed = slots_expired(s)
  if number == 0 then
    return
  end
  s.total, s.dirty = s.total - freed, true
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

-- Replaces all slots.
local function slots_rewrite(s, slots)
  table.sort(slots, function(a, b)
    return a.till < b.till
  end)
  slots_clear(s)
  local elements = {}
  for _, slot in ipairs(slots) do
    elements[#elements + 1] = slot.permit
    elements[#elements + 1] = encode('>I7I7I7', slot.since, slot.till, slot.cost)
    s.total, s.last = s.total + slot.cost, slot.till
  end
  if #elements > 0 then
    if not s.kept then
      s.kept, s.head = true, slots_head(s)
      redis.call('RPUSH', s.key, s.head)
    end
    for first = 1, #elements, 1000 do
      redis.call('RPUSH', s.key, unpack(elements, first, min(first + 999, #elements)))
    end
  end
end

-- Repairs slots that were taken after now or expire after `latest`.
local function slots_settle(s, latest)
  if s.newest <= now and s.last <= latest then
    return
  end
  local slots = slots_all(s)
  for _, slot in ipairs(slots) do
    if slot.since > now then
      slot.till, slot.since = slot.till - (slot.since - now), now
    end
    if slot.till > latest then
      slot.since, slot.till = now, latest
    end
  end
  s.newest = now
  slots_rewrite(s, slots)
end

local function slots_insert(s, slot)
  s.newest = max(s.newest, slot.since)
  if slot.till < s.last then
    local slots = slots_all(s)
    slots[#slots + 1] = slot
    return slots_rewrite(s, slots)
  end
  s.total, s.last, s.dirty = s.total + slot.cost, slot.till, true
  local data = encode('>I7I7I7', slot.since, slot.till, slot.cost)
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
  local number = slots_expired(s)
  local till
  repeat
    number = number + 1
    local _, slot_till, slot_cost = slot_at(s, number)
    used, till = used - slot_cost, slot_till
  until used <= room
  return till - now
end

-- `extra` is the permit of a take or the age of a debit.
function concurrency.step(s, l, op, cost, extra)
  -- A slot with a longer ttl than the current one, perhaps set by mistake, must not block others until then.
  slots_settle(s, now + l.ttl)
  local wait = 0
  if op <= PEEK then
    wait = slots_wait(s, l, cost)
    if op == TAKE and wait == 0 and cost > 0 then
      slots_drop(s)
      slots_insert(s, { permit = extra or NO_PERMIT, since = now, till = now + l.ttl, cost = cost })
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
