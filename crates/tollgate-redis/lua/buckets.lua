-- Calls that only take and peek, from token buckets: the most common calls, and so the leanest program. All takes of a
-- plan are in one group, so they are taken all or not at all.
--
-- It gives the same results as `general`, which decides every call with a state that is unusual: paused, with other
-- numbers, in the older format, in the future or unreadable. Nothing is written before all states are read.

-- Returns the names and values of the keys, or nothing if one of them is not a string or not at this node.
local function read_values(call_keys, call_args)
  local keys = call_keys
  if #keys > 1 then
    return keys, redis.call('MGET', unpack(keys))
  elseif #keys == 0 then
    keys = { unpack(call_args, 4) }
  end
  local get, values = redis.pcall, {}
  for number = 1, #keys do
    local value = get('GET', keys[number])
    if type(value) == 'table' then
      return
    end
    values[number] = value
  end
  return keys, values
end

-- MGET also returns nothing for a key of another type: returns whether one of the keys without a value exists.
local function has_other_type(keys, values)
  local absent = {}
  for number = 1, #keys do
    if not values[number] then
      absent[#absent + 1] = keys[number]
    end
  end
  return redis.call('EXISTS', unpack(absent)) > 0
end

-- The parameters of limits, and of the short lists of limits in calls, by their encoding. A function library keeps them
-- for later calls.
local known_buckets, known_lists, known = {}, {}, 0

local function read_bucket(code)
  local burst, give, grains = struct.unpack('>xI7I7I7', code)
  -- As in token_bucket.lua.
  local life = math.ceil(burst * grains / give) + GRACE * 1000
  local unit = math.ceil(life / 62)
  local bucket = {
    burst = burst, give = give, grains = grains, capacity = burst * grains,
    expiry = life, life = life - GRACE * 500, unit = unit, cycle = 128 * unit,
  }
  known_buckets[code], known = bucket, known + 1
  return bucket
end

-- Reads `count` limits. Returns nothing if a number is too large.
local function read_list(list, count)
  if known > 256 then
    known_buckets, known_lists, known = {}, {}, 0
  end
  local buckets = {}
  for number = 1, count do
    local code = string.sub(list, 23 * number - 22, 23 * number)
    local bucket = known_buckets[code] or read_bucket(code)
    if bucket.give >= MAX_GIVE then
      return
    end
    buckets[number] = bucket
  end
  if count <= 8 then
    known_lists[list], known = buckets, known + 1
  end
  return buckets
end

-- Returns the parameters of each limit, and the position of the first plan. Nothing if a number is too large.
local function read_buckets(call)
  local count, at = struct.unpack('>I2', call)
  local list = string.sub(call, at, at + 23 * count - 1)
  return known_lists[list] or read_list(list, count), at + 23 * count
end

-- Writes the states of the first `count` keys in `taken`, each once.
local function write_buckets(keys, ticks, limits, deficits, taken, count, now)
  local encode, write = struct.pack, redis.call
  for index = 1, count do
    local key = taken[index]
    local deficit = deficits[key]
    if deficit then
      deficits[key] = nil
      local l, tick = limits[key], ticks[key]
      -- As in token_bucket.lua: the first term is the time since the expiry was set.
      if tick and (now - tick * l.unit) % l.cycle + deficit / l.give <= l.life then
        write('SETRANGE', keys[key], '0', encode(BUCKET, tick, now, deficit, l.give, l.capacity))
      else
        tick = 128 + math.floor(now / l.unit) % 128
        local ttl = string.format('%d', math.ceil(l.expiry / 1000))
        write('PSETEX', keys[key], ttl, encode(BUCKET, tick, now, deficit, l.give, l.capacity))
      end
    end
  end
end

-- Takes back the debits of a plan that is refused, and corrects the figures of these takes. The plan is at `at` in the
-- call. The reply has `size` elements before its figures, and `last` elements with them.
local function undo(call, at, buckets, deficits, reply, size, last)
  local decode, ceil = struct.unpack, math.ceil
  at = at + 2
  while size < last do
    local key, number, cost
    key, number, cost, at = decode('>xI2I2I7', call, at)
    local l = buckets[number]
    local deficit = deficits[key] - cost * l.grains
    deficits[key] = deficit
    reply[size + 2], reply[size + 3] = l.burst - ceil(deficit / l.grains), ceil(deficit / l.give)
    size = size + 3
  end
end

-- Decides each take without a function call, which costs as much as the arithmetic: `x + -x % 1` is ceil(x). A take is
-- debited before the later takes of its plan are decided, because most plans are allowed.
local function decide_buckets(call_keys, call_args)
  local now, call = read_time(call_args), call_args[1]
  local keys, values = read_values(call_keys, call_args)
  local buckets, at = read_buckets(call)
  if not keys or not buckets then
    return general(call_keys, call_args)
  end
  local decode, last = struct.unpack, #call
  -- Deficits and limits are by key number, and `values` has the tick of a key after its first take. The tables begin with
  -- space for common calls: growing a table costs more than a decision.
  local deficits = { nil, nil, nil, nil, nil, nil, nil, nil }
  local limits = { nil, nil, nil, nil, nil, nil, nil, nil }
  local taken, writes, absent = { nil, nil, nil, nil, nil, nil, nil, nil }, 0, 0
  local reply, size = { now, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }, 1
  -- The current plan: its verb, its remaining takes, its position in the call, and `size` and `writes` before it.
  local verb, left, start, old_size, old_writes = 0, 0, 0, 0, 0
  while at <= last do
    local key, number, cost
    if left == 0 then
      start, old_size, old_writes = at, size, writes
      verb, left, key, number, cost, at = decode('>BBxI2I2I7', call, at)
    else
      key, number, cost, at = decode('>xI2I2I7', call, at)
    end
    left = left - 1
    local l, deficit = buckets[number], deficits[key]
    local give, wait = l.give, 0
    if not deficit then
      local value = values[key]
      deficit, limits[key] = 0, l
      if value then
        local tick, since, before, old_give, capacity
        if #value == BUCKET_SIZE then
          tick, since, before, old_give, capacity = decode(BUCKET, value)
        end
        if
          not tick or tick < 128 or since > now or old_give ~= give or capacity ~= l.capacity or before > capacity
        then
          return general(call_keys, call_args)
        end
        values[key], deficit = tick, before - give * (now - since)
        if deficit < 0 then
          deficit = 0
        end
      else
        absent = absent + 1
      end
    elseif limits[key] ~= l then
      return general(call_keys, call_args)
    end
    if cost > l.burst then
      wait = -1
    else
      local room = (l.burst - cost) * l.grains
      if deficit > room then
        wait = (deficit - room) / give
        wait = wait + -wait % 1
      elseif verb == 1 and cost > 0 then
        deficit, writes = deficit + cost * l.grains, writes + 1
        taken[writes] = key
      end
    end
    if wait ~= 0 and verb == 1 then
      -- The rest of the plan only peeks.
      undo(call, start, buckets, deficits, reply, old_size, size)
      verb, writes = 2, old_writes
    end
    deficits[key] = deficit
    local used, reset = deficit / l.grains, deficit / give
    reply[size + 1], reply[size + 2], reply[size + 3] = wait, l.burst - (used + -used % 1), reset + -reset % 1
    size = size + 3
  end
  if absent > 0 and #call_keys > 1 and has_other_type(keys, values) then
    return general(call_keys, call_args)
  end
  write_buckets(keys, values, limits, deficits, taken, writes, now)
  return reply
end
