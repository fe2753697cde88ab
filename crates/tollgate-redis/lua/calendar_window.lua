-- Calendar window: as AlignedWindow in fixed_window.rs. State: last, used, end.
local calendar_window = { size = 21 }

-- Calendars are the node's business: it sends the windows around the time it believes it is here.
function calendar_window.limit(call, at)
  local count, one, two, three, four, after = decode('>I7I7I7I7I7', call, at)
  local l = { algorithm = calendar_window, shape = nil, count = count, start = nil, stop = nil }
  if now < one or now >= four then
    l.stale = true
  elseif now < two then
    l.start, l.stop = one, two
  elseif now < three then
    l.start, l.stop = two, three
  else
    l.start, l.stop = three, four
  end
  return l, after
end

-- The state that these bytes hold, or a fresh one. All its fields are made at once: a table that grows
-- costs more than the arithmetic.
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
  local before, stamp = used, now
  if op == DEBIT then
    stamp, op, cost = stamped(age, cost, l.start)
  end
  if before == 0 then
    last = stamp
  end
  local left = max(1, stop - now)
  local wait
  wait, used = counted(l.count, used, left, op, cost)
  if used ~= before then
    last = max(last, stamp)
  end
  if repaired or used ~= before then
    s.last, s.used, s.stop, s.dirty = last, used, stop, true
  end
  return wait, max(0, l.count - used), used > 0 and left or 0
end

calendar_window.open, calendar_window.write = open_string, write_string
algorithms.a = calendar_window
