-- Sliding window. Mirrors sliding_window.rs. State: a list. The first element is (length, base), then one element
-- per take: time and running total. A new take stays in `newest` until the end of the call, so that all takes of
-- one call on one key are one write. `kept` is true if the list exists in Redis.
local sliding_window = { letter = 'w', is_list = true }

function sliding_window.limit(call, at)
  local count, length, after = decode('>I7I7', call, at)
  return { algorithm = sliding_window, spec = nil, count = count, length = length }, after
end

local function log_head(s)
  return encode('>I7I7', s.length, s.base) .. extension(s)
end

function sliding_window.open(_, number)
  local key = keys[number]
  local s = {
    key = key, algorithm = sliding_window, dirty = false, reset = 0,
    length = 0, base = 0, entries = 0, kept = false, head = false,
    oldest = nil, first = nil, newest = nil, total = nil,
  }
  local head = redis.pcall('LRANGE', key, 0, 1)
  if head.err then
    return unavailable(key, head.err)
  elseif not head[1] then
    return s
  elseif not read_extension(s, head[1], 14) or (head[2] and #head[2] ~= 14) then
    return unreadable(key)
  end
  s.kept, s.head = true, head[1]
  s.length, s.base = decode('>I7I7', head[1])
  if head[2] then
    local last = redis.call('LINDEX', key, -1)
    if #last ~= 14 then
      return unreadable(key)
    end
    s.oldest, s.first = decode('>I7I7', head[2])
    -- nil: log_length reads it when needed.
    s.entries = nil
    s.newest, s.total = decode('>I7I7', last)
  end
  return s
end

local function log_length(s)
  if not s.entries then
    s.entries = redis.call('LLEN', s.key) - 1
  end
  return s.entries
end

-- Writes the newest entry if it is not in Redis yet.
local function log_sync(s)
  if not s.pending then
    return
  end
  local entry = encode('>I7I7', s.newest, s.total)
  if s.pending == 'replace' then
    redis.call('LSET', s.key, -1, entry)
  elseif s.kept then
    redis.call('RPUSH', s.key, entry)
  else
    s.kept, s.head = true, log_head(s)
    redis.call('RPUSH', s.key, s.head, entry)
  end
  s.pending = nil
end

local function log_entry(s, index)
  return decode('>I7I7', redis.call('LINDEX', s.key, index))
end

-- Returns the number of entries for which `is_before` is true, from the first: doubling steps, then bisection.
local function log_search(s, is_before)
  log_sync(s)
  local low, step, length = 0, 1, log_length(s)
  local high = length + 1
  while low + step < high do
    if not is_before(log_entry(s, low + step)) then
      high = low + step
      break
    end
    low, step = low + step, step * 2
  end
  -- `is_before` is true for entry `low` and false for entry `high`.
  while high - low > 1 do
    local middle = floor((low + high) / 2)
    if is_before(log_entry(s, middle)) then
      low = middle
    else
      high = middle
    end
  end
  return low
end

-- Returns the number of entries that have left a window of this length.
local function log_expired(s, length)
  if not s.newest or s.oldest + length > now then
    return 0
  elseif s.newest + length <= now then
    -- Includes the takes of this call, if another plan has a shorter window.
    log_sync(s)
    return log_length(s)
  elseif s.searched ~= length then
    s.searched, s.expired = length, log_search(s, function(at)
      return at + length <= now
    end)
  end
  return s.expired
end

local function log_used(s, length)
  if not s.newest then
    return 0
  end
  local expired = log_expired(s, length)
  if expired == 0 then
    return s.total - s.base
  end
  local _, gone = log_entry(s, expired)
  return s.total - gone
end

-- Removes all entries. Only a pause may remain.
local function log_clear(s)
  s.base, s.entries, s.pending, s.searched = 0, 0, nil, nil
  s.oldest, s.newest, s.total = nil, nil, nil
  clear_list(s)
end

local function log_drop(s, length)
  local expired = log_expired(s, length)
  if expired == 0 then
    return
  elseif expired == log_length(s) then
    return log_clear(s)
  end
  log_sync(s)
  local _, gone = log_entry(s, expired)
  -- The last expired element becomes the head.
  s.base, s.entries, s.searched = gone, s.entries - expired, nil
  s.head = log_head(s)
  redis.call('LTRIM', s.key, expired, -1)
  redis.call('LSET', s.key, 0, s.head)
  s.oldest, s.first = log_entry(s, 1)
end

local function log_append(s, at, cost)
  local total = (s.total or s.base) + cost
  if s.newest == at then
    s.pending = s.pending or 'replace'
  else
    log_sync(s)
    s.newest, s.pending = at, 'append'
    s.entries = s.entries and s.entries + 1
  end
  s.total, s.dirty = total, true
  if not s.oldest or s.oldest == at then
    s.oldest, s.first = at, total
  end
end

-- Replaces all entries after the first `kept`.
local function log_replace(s, kept, entries)
  redis.call('LTRIM', s.key, 0, kept)
  for first = 1, #entries, 1000 do
    redis.call('RPUSH', s.key, unpack(entries, first, min(first + 999, #entries)))
  end
  s.entries, s.searched, s.dirty = kept + #entries, nil, true
  s.oldest, s.first = log_entry(s, 1)
  s.newest, s.total = log_entry(s, -1)
end

-- Inserts a take in the past. One entry has all takes of a time, so that a settlement finds them.
local function log_insert(s, at, cost)
  if not s.newest or at >= s.newest then
    return log_append(s, at, cost)
  end
  local place = log_search(s, function(other)
    return other <= at
  end)
  local kept, before = place, s.base
  if place > 0 then
    local when, total = log_entry(s, place)
    before = total
    if when == at then
      kept = place - 1
    end
  end
  local later = redis.call('LRANGE', s.key, place + 1, -1)
  for index, entry in ipairs(later) do
    local when, total = decode('>I7I7', entry)
    later[index] = encode('>I7I7', when, total + cost)
  end
  table.insert(later, 1, encode('>I7I7', at, before + cost))
  log_replace(s, kept, later)
end

-- Removes `cost`, the newest entries first.
local function log_take_back(s, cost)
  local left = max(s.base, s.total - cost)
  if left == s.base then
    return log_clear(s)
  end
  local kept = log_search(s, function(_, total)
    return total < left
  end)
  local at = log_entry(s, kept + 1)
  log_replace(s, kept, { encode('>I7I7', at, left) })
end

-- Repairs a log with entries after now or of another window length.
local function log_settle(s, length)
  if s.length ~= length then
    -- Entries that expired under the old length stay expired under a longer one.
    log_drop(s, s.length)
    s.length, s.dirty = length, s.dirty or s.kept
  end
  if s.newest and s.newest > now then
    local earlier = log_search(s, function(at)
      return at <= now
    end)
    local later = redis.call('LRANGE', s.key, earlier + 1, -1)
    for index, entry in ipairs(later) do
      local _, total = decode('>I7I7', entry)
      later[index] = encode('>I7I7', now, total)
    end
    log_replace(s, earlier, later)
  end
end

local function log_wait(s, l, cost)
  if cost > l.count then
    return huge
  elseif cost == 0 or log_used(s, l.length) <= l.count - cost then
    return 0
  end
  -- The take fits when all entries up to this one have left.
  local leaving = s.total - (l.count - cost)
  if s.first >= leaving then
    return s.oldest + l.length - now
  end
  local before = log_search(s, function(_, total)
    return total < leaving
  end)
  return log_entry(s, before + 1) + l.length - now
end

function sliding_window.step(s, l, op, cost, age)
  local length, wait = l.length, 0
  log_settle(s, length)
  if op <= PEEK then
    wait = log_wait(s, l, cost)
    if op == TAKE and wait == 0 and cost > 0 then
      log_drop(s, length)
      log_append(s, now, cost)
    end
  elseif op == REFUND then
    if cost > 0 and log_used(s, length) > 0 then
      log_drop(s, length)
      log_take_back(s, cost)
    end
  else
    cost = min(cost, max(0, l.count - log_used(s, length)))
    if age < length and cost > 0 then
      log_drop(s, length)
      log_insert(s, max(0, now - age), cost)
    end
  end
  local used = log_used(s, length)
  -- A negative remaining amount is a debt.
  return wait, l.count - used, used > 0 and s.newest + length - now or 0
end

function sliding_window.write(s)
  log_sync(s)
  write_list(s, log_head(s), not s.newest)
end

algorithms.w = sliding_window

-- Only in programs that list keys:
function sliding_window.expired(s)
  return not s.newest or s.newest + s.length <= now
end
