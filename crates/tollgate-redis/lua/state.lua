-- Storage format shared by all algorithms.
--
-- The fixed-size state of the algorithm comes first. An optional extension follows: a flags byte, the pause, and
-- the spec of an inline limit. Most states have no extension.
local PAUSED = 1

-- Algorithms by the first letter of the limit identity.
local algorithms = {}

local function extension(s)
  if s.since then
    return encode('>BI7I7', PAUSED, s.since, s.till) .. (s.spec or '')
  elseif s.spec then
    return '\0' .. s.spec
  end
  return ''
end

local function unreadable(key)
  return { error = 'INCOMPATIBLE unknown state format at key ' .. key }
end

-- Returns the state of a key that could not be read. If the node does not have a named key, the call for its slot
-- is redirected, or returns the real error.
local function unavailable(key, err)
  if not are_named or string.find(err, '^WRONGTYPE') then
    return { error = err .. ' at key ' .. key }
  elseif string.find(err, 'same slot', 1, true) then
    return { error = 'CROSSSLOT' }
  end
  return { error = 'WRONGNODE' }
end

-- Reads the extension after the state into `s`. Returns false if its format is unknown.
local function read_extension(s, v, size)
  if #v <= size then
    return #v == size
  end
  local flags, at = decode('>B', v, size + 1), size + 2
  if flags > PAUSED or (flags == PAUSED and #v < size + 15) then
    return false
  elseif flags == PAUSED then
    s.since, s.till, at = decode('>I7I7', v, at)
  end
  if at <= #v then
    s.spec = string.sub(v, at)
  end
  return true
end

-- Returns the TTL of a key in milliseconds, as text: Redis needs ten times as long to format a number. `min_ttl` is
-- set where the parameters of the limit are unknown.
local function lifetime(s)
  return string.format('%d', max(ceil(s.reset / 1000), s.min_ttl or 0) + GRACE)
end

-- Values that `fetch` has read, by key number.
local fetched

-- Opens a state that is a string.
local function open_string(algorithm, number)
  local key = keys[number]
  -- MGET also returns nothing for a key of another type; GET returns the error.
  local v = fetched[number] or redis.pcall('GET', key)
  if not v then
    return algorithm.state(key)
  elseif type(v) == 'table' then
    return unavailable(key, v.err)
  elseif #v == algorithm.size or #v == algorithm.small_size then
    return algorithm.state(key, v)
  elseif #v < algorithm.size then
    return unreadable(key)
  end
  local s = algorithm.state(key, v)
  if s.error or read_extension(s, v, algorithm.size) then
    return s
  end
  return unreadable(key)
end

-- Removes every element of a list except the head. The key itself is deleted at the end of the call: while its slot
-- migrates, a node refuses to create it again.
local function clear_list(s)
  s.dirty = true
  if s.kept then
    redis.call('LTRIM', s.key, 0, 0)
  end
end

-- Writes a state that is a list with this head. `is_empty`: it has no other element.
local function write_list(s, head, is_empty)
  if s.kept and is_empty and not s.since then
    redis.call('DEL', s.key)
    s.kept = false
  elseif s.kept and s.head ~= head then
    redis.call('LSET', s.key, 0, head)
  elseif s.since and not s.kept then
    redis.call('RPUSH', s.key, head)
    s.kept = true
  end
  if s.kept then
    redis.call('PEXPIRE', s.key, lifetime(s))
  end
end

local function write_string(s)
  local algorithm = s.algorithm
  if s.since or not algorithm.unused(s) then
    redis.call('SET', s.key, algorithm.text(s) .. extension(s), 'PX', lifetime(s))
  else
    redis.call('DEL', s.key)
  end
end
