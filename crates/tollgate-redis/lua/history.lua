-- The history: one hash per interval. A field is a name, its value the counts of all nodes, seven bytes each.

-- Maximum number of fields of an interval. Further names are added up under one name.
local MAX_NAMES = 64
local OTHER_NAMES = '…'

-- Adds counts. Those of another format are replaced.
local function add_counts(sums, counts)
  local size = #counts / 7
  if not sums or #sums ~= #counts then
    return counts
  end
  local format = '>' .. string.rep('I7', size)
  local result, other = { decode(format, sums) }, { decode(format, counts) }
  for n = 1, size do
    result[n] = result[n] + other[n]
  end
  return encode(format, unpack(result, 1, size))
end

-- Adds counts to an interval. Arguments from `at`: milliseconds to keep it, number of names, then each name and its
-- counts. Returns the position after them.
local function add_interval(key, at)
  local keep, size = args[at], tonumber(args[at + 1])
  local names, counts = {}, {}
  for n = 1, size do
    names[n], counts[n] = args[at + 2 * n], args[at + 2 * n + 1]
  end
  local kept = redis.call('HMGET', key, OTHER_NAMES, unpack(names))
  local sums, free = {}, false
  for n, name in ipairs(names) do
    local before = kept[n + 1]
    if not before and name ~= OTHER_NAMES then
      free = free or MAX_NAMES - 1 - redis.call('HLEN', key)
      free = free - 1
      if free < 0 then
        name, before = OTHER_NAMES, kept[1]
      end
    end
    sums[name] = add_counts(sums[name] or before, counts[n])
  end
  local fields = {}
  for name, sum in pairs(sums) do
    fields[#fields + 1] = name
    fields[#fields + 1] = sum
  end
  if size > 0 then
    redis.call('HSET', key, unpack(fields))
    redis.call('PEXPIRE', key, keep)
  end
  return at + 2 + 2 * size
end

-- Returns the fields and values of each interval.
local function history(call_keys, call_args)
  begin(call_keys, call_args)
  local intervals = {}
  for n, key in ipairs(keys) do
    intervals[n] = redis.call('HGETALL', key)
  end
  return intervals
end
