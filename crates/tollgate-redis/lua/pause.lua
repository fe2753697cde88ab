-- Pauses: as pause.rs. A state with `since` is paused until `till`.

-- A pause set in the future was set now: a clock that stepped back does not lengthen it.
local function settle_pause(s)
  if s.since > now then
    s.till, s.since, s.dirty = s.till - (s.since - now), now, true
  end
end

-- A step of a key, whether it is paused or not; remembers how long the key matters.
local function step(s, l, op, cost, age)
  local take = s.algorithm.step
  if not s.since then
    local wait, remaining, reset = take(s, l, op, cost, age)
    s.reset, s.shape = reset, l.shape
    return wait, remaining, reset
  end
  settle_pause(s)
  local left = s.till - now
  local wait, remaining, reset
  if left > 0 then
    -- Nothing is taken during a pause, so a take only asks.
    if op == TAKE then
      op = PEEK
    end
    wait, remaining, reset = take(s, l, op, cost, age)
    if op == PEEK and cost > 0 then
      wait = max(wait, left)
    end
    remaining, reset = 0, max(reset, left)
  else
    wait, remaining, reset = take(s, l, op, cost, age)
    -- The first take after a pause has ended lays it to rest.
    if op == TAKE and cost > 0 and wait == 0 then
      s.since, s.till, s.dirty = nil, nil, true
    end
  end
  s.reset, s.shape = reset, l.shape
  return wait, remaining, reset
end
