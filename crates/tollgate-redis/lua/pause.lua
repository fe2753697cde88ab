-- Pauses. Mirrors pause.rs. A state with `since` is paused until `till`.

-- A pause that begins in the future begins now, so that a clock step back does not lengthen it.
local function settle_pause(s)
  if s.since > now then
    s.till, s.since, s.dirty = s.till - (s.since - now), now, true
  end
end

-- Steps a paused key.
local function step_paused(s, l, op, cost, extra)
  settle_pause(s)
  local left = s.till - now
  if left > 0 then
    -- A pause refuses every take, so a take becomes a peek.
    if op == TAKE then
      op = PEEK
    end
    local wait, remaining, reset = s.algorithm.step(s, l, op, cost, extra)
    if op == PEEK and cost > 0 then
      wait = max(wait, left)
    end
    return wait, min(0, remaining), max(reset, left)
  end
  local wait, remaining, reset = s.algorithm.step(s, l, op, cost, extra)
  -- The first take after the end of a pause removes it.
  if (op == TAKE or op == LEASE) and cost > 0 and wait == 0 then
    s.since, s.till, s.dirty = nil, nil, true
  end
  return wait, remaining, reset
end

-- Runs `work` on a list. `open` has read only the ends of the list, so other elements may be invalid; then this key
-- alone fails. Errors of Redis (for example a refused write) fail the whole call. Errors of Lua begin with their
-- position.
local function try(s, work, ...)
  local done, first, second, third = pcall(work, s, ...)
  if done then
    return first, second, third
  elseif type(first) ~= 'string' or not string.find(first, '^user_%a+:%d+: ') then
    error(first, 0)
  end
  s.error = unreadable(s.key).error
  return huge, 0, 0
end

-- Steps a key and sets its reset time. `extra` is the age of a debit or the permit of a take.
local function step(s, l, op, cost, extra)
  local take = s.since and step_paused or s.algorithm.step
  local wait, remaining, reset
  if s.algorithm.is_list then
    wait, remaining, reset = try(s, take, l, op, cost, extra)
  else
    wait, remaining, reset = take(s, l, op, cost, extra)
  end
  s.reset = reset
  if s.spec ~= l.spec then
    s.spec = l.spec
  end
  return wait, remaining, reset
end
