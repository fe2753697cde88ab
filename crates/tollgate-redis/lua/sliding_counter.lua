-- Sliding counter. Mirrors sliding_counter.rs. State: last, length, previous, current.
local sliding_counter = { letter = 'c', size = 28 }

function sliding_counter.limit(call, at)
  local count, length, tick, after = decode('>I7I7I7', call, at)
  local l = {
    algorithm = sliding_counter, spec = nil,
    count = count, length = length, tick = tick, ticks = length / tick, most = nil,
  }
  -- Largest count of one window: the limit and a debt of another one.
  l.most = min(2 * count, floor(MAX_EXACT / l.ticks))
  return l, after
end

-- Decodes a state, or creates a fresh one. The constructor sets all fields: growing a table costs more than the
-- arithmetic.
function sliding_counter.state(key, v)
  local last, length, previous, current = 0, 0, 0, 0
  if v then
    last, length, previous, current = decode('>I7I7I7I7', v)
    if not (length > 0 or (previous == 0 and current == 0)) then
      return unreadable(key)
    end
  end
  return {
    key = key, algorithm = sliding_counter, dirty = false, reset = 0,
    last = last, length = length, previous = previous, current = current,
  }
end

function sliding_counter.unused(s)
  return s.previous == 0 and s.current == 0
end

function sliding_counter.text(s)
  return encode('>I7I7I7I7', s.last, s.length, s.previous, s.current)
end

-- Returns the start of the window that contains `last`.
local function window_start(last, length)
  if length == 0 then
    return last
  end
  return last - last % length
end

-- Zeroes the counts that have expired under windows of this length.
local function clear_expired(start, length, previous, current)
  if start + length <= now then
    previous = 0
  end
  if start + 2 * length <= now then
    current = 0
  end
  return previous, current
end

-- Converts the stored counts to the limit's window length. The last result is whether they must be written.
local function counter_settle(s, length)
  local last, previous, current = s.last, s.previous, s.current
  local ahead = last > now
  if ahead then
    if window_start(last, s.length) > now then
      previous, current = 0, min(MAX_EXACT, current + previous)
    end
    last = now
  end
  local renumbered = s.length ~= length
  if renumbered then
    local old_start = window_start(last, s.length)
    previous, current = clear_expired(old_start, s.length, previous, current)
    local start = window_start(last, length)
    if old_start > start then
      -- The old windows were shorter: the previous one may be within the current one.
      previous, current = 0, min(MAX_EXACT, current + previous)
    elseif old_start + length <= start then
      previous = 0
    end
  end
  local repaired = (previous > 0 or current > 0) and (ahead or renumbered)
  return last, previous, current, repaired
end

local function counter_wait(l, previous, current, into, cost)
  if cost > l.count then
    return huge
  elseif cost == 0 then
    return 0
  end
  local elapsed, fraction = floor(into / l.tick), into % l.tick
  previous, current = min(previous, l.most), min(current, l.most)
  local weighted = previous * (l.ticks - elapsed)
  local room = l.count - cost - current
  local wait
  if room < 0 then
    -- Not in this window: it must become the previous window and fade.
    wait = (l.ticks - elapsed) + ceil(-room * l.ticks / current)
  elseif weighted <= room * l.ticks then
    return 0
  else
    -- Quota returns as the previous window fades.
    wait = ceil((weighted - room * l.ticks) / previous)
  end
  return wait * l.tick - fraction
end

function sliding_counter.step(s, l, op, cost, age)
  local length = l.length
  local last, previous, current, repaired = counter_settle(s, length)
  local kept_previous, kept_current = previous, current
  local start = window_start(last, length)
  previous, current = clear_expired(start, length, previous, current)
  if start + length <= now then
    previous, current = current, 0
  end
  local before_previous, before_current = previous, current
  local into, wait = now % length, 0
  if op <= PEEK then
    wait = counter_wait(l, previous, current, into, cost)
    if op == TAKE and wait == 0 then
      current = current + cost
    end
  elseif op == REFUND then
    local recent = min(cost, current)
    current = current - recent
    previous = max(0, previous - (cost - recent))
  elseif age <= into then
    current = debited(current, cost, l.count)
  elseif age <= into + length then
    previous = debited(previous, cost, l.count)
  end
  if previous ~= before_previous or current ~= before_current then
    s.last, s.length, s.previous, s.current, s.dirty = now, length, previous, current, true
  elseif repaired then
    s.last, s.length, s.previous, s.current, s.dirty = last, length, kept_previous, kept_current, true
  end
  local faded = ceil(min(previous, l.most) * (l.ticks - floor(into / l.tick)) / l.ticks)
  -- A negative remaining amount is a debt.
  local used = min(current, l.most) + faded
  local left = length - into
  local reset = 0
  if current > 0 then
    reset = left + length
  elseif previous > 0 then
    reset = left
  end
  return wait, l.count - used, reset
end

sliding_counter.open, sliding_counter.write = open_string, write_string
algorithms.c = sliding_counter

-- Only in programs that list keys:
function sliding_counter.expired(s)
  local start = window_start(s.last, s.length)
  local previous, current = clear_expired(start, s.length, s.previous, s.current)
  return previous == 0 and current == 0
end
