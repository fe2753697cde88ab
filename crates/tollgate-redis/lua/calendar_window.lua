-- Calendar window. Mirrors AlignedWindow in fixed_window.rs. State: last, used, end.
local calendar_window = { letter = 'a', size = 21 }

-- Redis has no calendar: the node sends three windows around its estimate of the server time, as four boundaries.
function calendar_window.limit(call, at)
  local count, b1, b2, b3, b4, after = decode('>I7I7I7I7I7', call, at)
  local l = { algorithm = calendar_window, spec = nil, count = count, start = nil, stop = nil }
  if now < b1 or now >= b4 then
    l.stale = true
  elseif now < b2 then
    l.start, l.stop = b1, b2
  elseif now < b3 then
    l.start, l.stop = b2, b3
  else
    l.start, l.stop = b3, b4
  end
  return l, after
end

-- Decodes a state, or creates a fresh one. The constructor sets all fields: growing a table costs more than the
-- arithmetic.
function calendar_window.state(key, v)
  local last, used, stop = 0, 0, 0
  if v then
    last, used, stop = decode('>I7I7I7', v)
  end
  return {
    key = key, algorithm = calendar_window, dirty = false, reset = 0,
    last = last, used = used, stop = stop,
  }
end

function calendar_window.unused(s)
  return s.used == 0
end

function calendar_window.text(s)
  return encode('>I7I7I7', s.last, s.used, s.stop)
end

function calendar_window.step(s, l, op, cost, age)
  local last, used, stop = s.last, s.used, l.stop
  local ahead = last > now
  if ahead then
    last = now
  elseif s.stop <= now or last < l.start then
    used = 0
  end
  local repaired = used > 0 and (ahead or s.stop ~= stop)
  local before, at = used, now
  if op == DEBIT then
    at, op, cost = stamp(age, cost, l.start)
  end
  if before == 0 then
    last = at
  end
  local left = max(1, stop - now)
  local wait
  wait, used = count(l.count, used, left, op, cost)
  if used ~= before then
    last = max(last, at)
  end
  if repaired or used ~= before then
    s.last, s.used, s.stop, s.dirty = last, used, stop, true
  end
  -- A negative remaining amount is a debt.
  return wait, l.count - used, used > 0 and left or 0
end

calendar_window.open, calendar_window.write = open_string, write_string
algorithms.a = calendar_window

-- Only in programs that list keys:
function calendar_window.expired(s)
  return s.stop <= now
end
