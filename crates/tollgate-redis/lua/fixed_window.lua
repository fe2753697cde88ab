-- Fixed window. Mirrors FixedWindow in fixed_window.rs. State: opened, last, used, length.
local fixed_window = { letter = 'f', size = 28 }

function fixed_window.limit(call, at)
  local count, length, after = decode('>I7I7', call, at)
  return { algorithm = fixed_window, spec = nil, count = count, length = length }, after
end

-- Decodes a state, or creates a fresh one. The constructor sets all fields: growing a table costs more than the
-- arithmetic.
function fixed_window.state(key, v)
  local opened, last, used, length = 0, 0, 0, 0
  if v then
    opened, last, used, length = decode('>I7I7I7I7', v)
    if not (opened <= last) then
      return unreadable(key)
    end
  end
  return {
    key = key, algorithm = fixed_window, dirty = false, reset = 0,
    opened = opened, last = last, used = used, length = length,
  }
end

function fixed_window.unused(s)
  return s.used == 0
end

function fixed_window.text(s)
  return encode('>I7I7I7I7', s.opened, s.last, s.used, s.length)
end

function fixed_window.step(s, l, op, cost, age)
  local opened, last, used, length = s.opened, s.last, s.used, l.length
  local ahead = last > now
  if ahead then
    last, opened = now, min(opened, now)
  end
  if opened + s.length <= now then
    used = 0
  end
  local renumbered = s.length ~= length
  if opened + length <= now then
    -- The window has ended under a shorter length, but takes within the new length still count.
    opened = last
    if last + length <= now then
      used = 0
    end
  end
  local repaired = used > 0 and (ahead or renumbered)
  local before, at = used, now
  if op == DEBIT then
    at, op, cost = stamp(age, cost, max(0, now - (length - 1)))
  end
  if before == 0 then
    opened, last = at, at
  end
  local left = opened + length - now
  local wait
  wait, used = count(l.count, used, left, op, cost)
  if used ~= before then
    last = max(last, at)
  end
  if repaired or used ~= before then
    s.opened, s.last, s.used, s.length, s.dirty = opened, last, used, length, true
  end
  -- A negative remaining amount is a debt.
  return wait, l.count - used, used > 0 and left or 0
end

fixed_window.open, fixed_window.write = open_string, write_string
algorithms.f = fixed_window

-- Only in programs that list keys:
function fixed_window.expired(s)
  return s.opened + s.length <= now
end
