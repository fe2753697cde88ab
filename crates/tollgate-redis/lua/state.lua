-- How states are kept: what all algorithms share.
--
-- A state's own bytes come first. Where there is more to keep, a byte of flags follows them, then the
-- pause, then what an inline limit is made of. Nothing more is the usual case and costs nothing.
local PAUSED = 1

-- By the letter that the scopes of their limits begin with.
local algorithms = {}

local function extension(s)
  if s.since then
    return encode('>BI7I7', PAUSED, s.since, s.till) .. (s.shape or '')
  elseif s.shape then
    return '\0' .. s.shape
  end
  return ''
end

local function unreadable(key)
  return { error = 'INCOMPATIBLE state, not of this version, at key ' .. key }
end

-- Reads what follows the state's own bytes into `s`; false if it is none of ours.
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
    s.shape = string.sub(v, at)
  end
  return true
end

-- For how many milliseconds a key is kept, as text: Redis formats a number at ten times the cost. `least` is
-- set where the limit's numbers were not at hand.
local function lifetime(s)
  return string.format('%d', max(ceil(s.reset / 1000), s.least or 0) + GRACE)
end

-- What was read ahead, by the number of the key.
local fetched

-- A state that is one string.
local function open_string(algorithm, number)
  local key = keys[number]
  -- What was not found may be of another type, which only this tells.
  local v = fetched[number] or redis.pcall('GET', key)
  if not v then
    return algorithm.state(key)
  elseif type(v) == 'table' then
    return { error = v.err .. ' at key ' .. key }
  elseif #v == algorithm.size then
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

-- A state that is a list, whose head is to be this.
local function write_list(s, head)
  if s.kept and s.head ~= head then
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
