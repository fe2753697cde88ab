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

-- Returns the parameters of each limit, and the position of the first plan. Nothing if a number is too large.
local function read_buckets(call, now)
  local decode, ceil, floor = struct.unpack, math.ceil, math.floor
  local count, at = decode('>I2', call)
  local buckets = {}
  for number = 1, count do
    local burst, give, grains
    burst, give, grains, at = decode('>xI7I7I7x', call, at)
    if give >= MAX_GIVE then
      return
    end
    -- As in token_bucket.lua.
    local life = ceil(burst * grains / give) + GRACE * 1000
    local unit = ceil(life / 124)
    buckets[number] = {
      burst = burst, give = give, grains = grains, capacity = burst * grains,
      ttl = string.format('%d', ceil(life / 1000)), life = life - GRACE * 500, unit = unit, tick = floor(now / unit),
    }
  end
  return buckets, at
end

local function decide_buckets(call_keys, call_args)
  local now, call = read_time(call_args), call_args[1]
  local keys, values = read_values(call_keys, call_args)
  local buckets, at = read_buckets(call, now)
  if not keys or not buckets then
    return general(call_keys, call_args)
  end
  local decode, ceil = struct.unpack, math.ceil
  local deficits, owners, ticks, taken = {}, {}, {}, {}
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
        ticks[key], deficit = tick, before - give * (now - since)
        if deficit < 0 then
          deficit = 0
        end
      end
      deficits[key] = deficit
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
        deficit = deficit + cost * l.grains
        deficits[key] = deficit
        writes = writes + 1
        taken[writes] = key
      end
    end
    reply[size + 1], reply[size + 2], reply[size + 3] = wait, l.burst - ceil(deficit / l.grains), ceil(deficit / give)
    size = size + 3
  end
  local encode, write = struct.pack, redis.call
  for index = 1, writes do
    local key = taken[index]
    local deficit = deficits[key]
    -- A key with several takes is written once.
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
  return reply
end
