-- Pauses: as pause.rs. A state with `since` is paused until `till`.

-- A pause set in the future was set now: a clock that stepped back does not lengthen it.
local function settle_pause(s)
  if s.since > now then
    s.till, s.since, s.dirty = s.till - (s.since - now), now, true
  end
end

-- A step of a paused key.
local function step_paused(s, l, op, cost, extra)
  settle_pause(s)
  local left = s.till - now
  if left > 0 then
    -- Nothing is taken during a pause, so a take only asks.
    if op == TAKE then
      op = PEEK
    end
    local wait, _, reset = s.algorithm.step(s, l, op, cost, extra)
    if op == PEEK and cost > 0 then
      wait = max(wait, left)
    end
    return wait, 0, max(reset, left)
  end
  local wait, remaining, reset = s.algorithm.step(s, l, op, cost, extra)
  -- The first take after a pause has ended lays it to rest.
  if op == TAKE and cost > 0 and wait == 0 then
    s.since, s.till, s.dirty = nil, nil, true
  end
  return wait, remaining, reset
end

-- Works on a list, of which only the ends were looked at: what else it holds may be anybody's. Then whoever
-- needs the key is told, and nobody else. That Redis refuses to write is another matter, and everybody's: it is
-- no error of Lua's own, which begin with where they happened.
local function guarded(s, work, ...)
  local done, first, second, third = pcall(work, s, ...)
  if done then
    return first, second, third
  elseif type(first) ~= 'string' or not string.find(first, '^user_%a+:%d+: ') then
    error(first, 0)
  end
  s.error = unreadable(s.key).error
  return huge, 0, 0
end

-- A step of a key, which then knows for how long it matters. `extra` is the age of a debit or the permit of
-- a take.
local function step(s, l, op, cost, extra)
  local take = s.since and step_paused or s.algorithm.step
  local wait, remaining, reset
  if s.algorithm.is_list then
    wait, remaining, reset = guarded(s, take, l, op, cost, extra)
  else
    wait, remaining, reset = take(s, l, op, cost, extra)
  end
  s.reset = reset
  if s.shape ~= l.shape then
    s.shape = l.shape
  end
  return wait, remaining, reset
end
