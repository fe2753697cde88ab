-- Calls that only take and peek, with one token bucket per plan: the most common call, and so the leanest program.
-- It gives the same results as `general`, which decides every call with a state that is unusual: paused, with other
-- numbers, in the older format, in the future or unreadable. Nothing is written before all states are read.

-- Returns the names and values of the keys, or nothing if one of them is not a string or not at this node.
local function read_values(call_keys, call_args)
  local keys, values = call_keys, {}
  if #keys > 1 then
    values = redis.call('MGET', unpack(keys))
    local absent = {}
    for number = 1, #keys do
      if not values[number] then
        absent[#absent + 1] = keys[number]
      end
    end
    -- MGET also returns nothing for a key of another type.
    if #absent > 0 and redis.call('EXISTS', unpack(absent)) > 0 then
      return
    end
    return keys, values
  elseif #keys == 0 then
    keys = { unpack(call_args, 4) }
  end
  local get = redis.pcall
  for number = 1, #keys do
    local value = get('GET', keys[number])
    if type(value) == 'table' then
      return
    end
    values[number] = value
  end
  return keys, values
end

-- The parameters of limits by their encoding. A function library keeps them for later calls.
local known_buckets, known = {}, 0

local function read_bucket(code)
  local burst, give, grains = struct.unpack('>xI7I7I7', code)
  -- As in token_bucket.lua.
  local life = math.ceil(burst * grains / give) + GRACE * 1000
  local bucket = {
    burst = burst, give = give, grains = grains, capacity = burst * grains,
    ttl = string.format('%d', math.ceil(life / 1000)), life = life - GRACE * 500, unit = math.ceil(life / 62),
    tick = 0,
  }
  if known == 256 then
    known_buckets, known = {}, 0
  end
  known_buckets[code], known = bucket, known + 1
  return bucket
end

-- Returns the parameters of each limit, and the position of the first plan. Nothing if a number is too large.
local function read_buckets(call, now)
  local count, at = struct.unpack('>I2', call)
  local buckets = {}
  for number = 1, count do
    local code = string.sub(call, at, at + 22)
    local bucket = known_buckets[code] or read_bucket(code)
    if bucket.give >= MAX_GIVE then
      return
    end
    bucket.tick = math.floor(now / bucket.unit)
    buckets[number], at = bucket, at + 23
  end
  return buckets, at
end

-- Writes the states of the keys in `taken`, each once.
local function write_buckets(keys, ticks, buckets, owners, deficits, taken, now)
  local encode, write = struct.pack, redis.call
  for index = 1, #taken do
    local key = taken[index]
    local deficit = deficits[key]
    if deficit then
      deficits[key] = nil
      local l, tick = buckets[owners[key]], ticks[key]
      local current = l.tick
      -- As in token_bucket.lua.
      if tick and (current - (current - tick) % 128) * l.unit + l.life >= now + deficit / l.give then
        write('SETRANGE', keys[key], '0', encode(BUCKET, tick, now, deficit, l.give, l.capacity))
      else
        tick = 128 + current % 128
        write('PSETEX', keys[key], l.ttl, encode(BUCKET, tick, now, deficit, l.give, l.capacity))
      end
    end
  end
end

-- One function for each plan, without calls: a call costs as much as the arithmetic.
local function decide_buckets(call_keys, call_args)
  local now, call = read_time(call_args), call_args[1]
  local keys, values = read_values(call_keys, call_args)
  local buckets, at = read_buckets(call, now)
  if not keys or not buckets then
    return general(call_keys, call_args)
  end
  local decode, ceil = struct.unpack, math.ceil
  -- By key number. `values` has the tick of each state after its first plan.
  local deficits, owners, taken = {}, {}, {}
  local reply, size, writes = { now }, 1, 0
  while at <= #call do
    local verb, key, number, cost
    verb, key, number, cost, at = decode('>BxxI2I2I7', call, at)
    local l, deficit = buckets[number], deficits[key]
    local give, wait = l.give, 0
    if not deficit then
      local value = values[key]
      deficit, owners[key] = 0, number
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
      end
    elseif owners[key] ~= number then
      return general(call_keys, call_args)
    end
    if cost > l.burst then
      wait = -1
    else
      local room = (l.burst - cost) * l.grains
      if deficit > room then
        wait = ceil((deficit - room) / give)
      elseif verb == 1 and cost > 0 then
        deficit, writes = deficit + cost * l.grains, writes + 1
        taken[writes] = key
      end
    end
    deficits[key] = deficit
    reply[size + 1], reply[size + 2], reply[size + 3] = wait, l.burst - ceil(deficit / l.grains), ceil(deficit / give)
    size = size + 3
  end
  write_buckets(keys, values, buckets, owners, deficits, taken, now)
  return reply
end
