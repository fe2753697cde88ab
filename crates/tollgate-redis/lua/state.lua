-- How states are kept: what all algorithms share.
--
-- A state's own bytes come first. Where there is more to keep, a byte of flags follows them, then the
-- pause, then what an inline limit is made of. Nothing more is the usual case and costs nothing.
local PAUSED = 1

-- By the letter that the scopes of their limits begin with.
local algorithms = {}

local function extension(s)
  if s.since then
    return encode('>BI7I7', PAUSED, s.since, s.till) .. s.shape
  elseif s.shape ~= '' then
    return '\0' .. s.shape
  end
  return ''
end

-- Reads what follows the state's own bytes; false if it is none of ours.
local function read_extension(s, v, size)
  s.shape = ''
  if #v == size then
    return true
  elseif #v < size then
    return false
  end
  local flags, at = decode('>B', v, size + 1), size + 2
  if flags > PAUSED or (flags == PAUSED and #v < size + 15) then
    return false
  elseif flags == PAUSED then
    s.since, s.till, at = decode('>I7I7', v, at)
  end
  s.shape = string.sub(v, at)
  return true
end

local function unreadable(key)
  return { error = 'INCOMPATIBLE state, not of this version, at key ' .. key }
end

-- A state that is one string.
local function open_string(algorithm, key)
  local s = { key = key, algorithm = algorithm, shape = '' }
  local v = redis.pcall('GET', key)
  if not v then
    algorithm.fresh(s)
  elseif type(v) == 'table' then
    return { error = v.err .. ' at key ' .. key }
  elseif not read_extension(s, v, algorithm.size) or not algorithm.read(s, v) then
    return unreadable(key)
  end
  s.kept = v and true
  return s
end

-- For how long a key is kept; `least` is set where the limit's numbers were not at hand.
local function remaining_life(s)
  return max(lifetime(s.reset or 0), s.least or 0)
end

local function write_string(s)
  local algorithm = s.algorithm
  if s.since or not algorithm.unused(s) then
    redis.call('SET', s.key, algorithm.text(s) .. extension(s), 'PX', remaining_life(s))
  elseif s.kept then
    redis.call('DEL', s.key)
  end
end
