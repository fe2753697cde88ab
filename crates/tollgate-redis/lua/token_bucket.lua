-- Token bucket. Mirrors token_bucket.rs. State: at, deficit, give, capacity, and the tick of bucket_format.lua.
local token_bucket = { letter = 't', size = 28, small_size = BUCKET_SIZE }

function token_bucket.limit(call, at)
  local burst, give, grains, after = decode('>I7I7I7', call, at)
  local l = {
    algorithm = token_bucket, spec = nil,
    burst = burst, give = give, grains = grains, capacity = burst * grains,
  }
  return l, after
end

-- Decodes a state, or creates a fresh one. The constructor sets all fields: growing a table costs more than the
-- arithmetic.
function token_bucket.state(key, v)
  local at, deficit, give, capacity, tick = 0, 0, 0, 0, nil
  if v and #v == BUCKET_SIZE then
    tick, at, deficit, give, capacity = decode(BUCKET, v)
  elseif v then
    at, deficit, give, capacity = decode('>I7I7I7I7', v)
  end
  if (tick or 128) < 128 or not (deficit == 0 or (give > 0 and deficit <= 2 * capacity)) then
    return unreadable(key)
  end
  return {
    key = key, algorithm = token_bucket, dirty = false, reset = 0,
    at = at, deficit = deficit, give = give, capacity = capacity, tick = tick,
  }
end

function token_bucket.unused(s)
  return s.deficit == 0
end

function token_bucket.text(s)
  return encode('>I7I7I7I7', s.at, s.deficit, s.give, s.capacity)
end

-- Returns ceil(a*b/c) for a <= c, by long division where a*b may exceed 2^53.
local function mul_div_ceil(a, b, c)
  if a * b <= MAX_EXACT then
    return ceil(a * b / c)
  end
  local whole = floor(b / c)
  local part = b - whole * c
  local quotient, rest = 0, 0
  local bit = 2 ^ 53
  while bit >= 1 do
    -- Double the rest, then add the part, each without exceeding 2^53.
    if rest >= c - rest then
      rest, quotient = rest - (c - rest), 2 * quotient + 1
    else
      rest, quotient = 2 * rest, 2 * quotient
    end
    if a >= bit then
      a, quotient = a - bit, quotient + whole
      if rest >= c - part then
        rest, quotient = rest - (c - part), quotient + 1
      else
        rest = rest + part
      end
    end
    bit = bit / 2
  end
  if rest > 0 then
    return quotient + 1
  end
  return quotient
end

-- Converts a deficit from one capacity to another. One above the capacity is a debt of at most another full bucket.
local function rescale(deficit, from, to)
  if deficit <= from then
    return mul_div_ceil(deficit, to, from)
  end
  return min(2 * to, MAX_EXACT, to + mul_div_ceil(min(deficit - from, from), to, from))
end

-- `age` is the age of a debit, or the time of a lease.
function token_bucket.step(s, l, op, cost, age)
  local deficit, give, capacity = s.deficit, l.give, l.capacity
  local ahead = s.at > now
  if deficit > 0 and not ahead then
    -- A product above 2^53 is inexact, but it is larger than any deficit.
    deficit = max(0, deficit - s.give * (now - s.at))
  end
  local renumbered = s.give ~= give or s.capacity ~= capacity
  if renumbered and deficit > 0 then
    deficit = rescale(deficit, s.capacity, capacity)
  end
  local before, wait = deficit, 0
  if op == LEASE then
    -- As if the tokens were taken at any time until the lease ends: quota that refills meanwhile is not leased.
    deficit, op = max(deficit, give * age), TAKE
  end
  if op <= PEEK then
    if cost > l.burst then
      wait = huge
    else
      -- Never deficit + cost*grains: that may exceed 2^53.
      local room = (l.burst - cost) * l.grains
      if deficit > room and cost > 0 then
        wait = ceil((deficit - room) / give)
      elseif op == TAKE then
        deficit = deficit + cost * l.grains
      end
    end
  elseif op == REFUND then
    -- In debt, more than a burst can be refunded. A product above 2^53 is inexact, but it is larger than any deficit.
    deficit = max(0, deficit - cost * l.grains)
  else
    local owed = max(0, min(cost, l.burst) * l.grains - give * age)
    deficit = max(deficit, min(capacity, deficit + owed))
  end
  if deficit ~= before or (before > 0 and (ahead or renumbered)) then
    s.at, s.deficit, s.give, s.capacity, s.dirty = now, deficit, give, capacity, true
    if ahead or renumbered then
      s.tick = nil
    end
  end
  return wait, l.burst - ceil(deficit / l.grains), ceil(deficit / give)
end

function token_bucket.write(s)
  local give, capacity, key = s.give, s.capacity, s.key
  -- The unit of the tick does not cover a debt.
  if s.since or s.spec or s.deficit == 0 or s.deficit > capacity or give >= MAX_GIVE then
    return write_string(s)
  end
  local life = ceil(capacity / give) + GRACE * 1000
  local unit = ceil(life / 62)
  local current = floor(now / unit)
  -- The expiry was set in the unit of the tick. Half of the grace must remain after the bucket is full.
  local tick = s.tick
  if tick and (current - (current - tick) % 128) * unit + life - GRACE * 500 >= s.at + s.deficit / give then
    redis.call('SETRANGE', key, '0', encode(BUCKET, tick, s.at, s.deficit, give, capacity))
  else
    local ttl = string.format('%d', ceil(life / 1000))
    redis.call('PSETEX', key, ttl, encode(BUCKET, 128 + current % 128, s.at, s.deficit, give, capacity))
  end
end

token_bucket.open = open_string
algorithms.t = token_bucket

-- Only in programs that list keys:
function token_bucket.expired(s)
  return s.at <= now and s.deficit - s.give * (now - s.at) <= 0
end
