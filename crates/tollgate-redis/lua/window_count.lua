-- Shared by fixed and calendar windows. Mirrors count and stamp in fixed_window.rs.

-- Returns the time, operation and cost of a debit. A debit before `earliest` has no effect.
local function stamp(age, cost, earliest)
  local before = now - age
  if before >= earliest then
    return before, DEBIT, cost
  end
  return now, PEEK, 0
end

-- Returns the wait and the new count. `left` is the number of microseconds until the window ends.
local function count(limit, used, left, op, cost)
  if op <= PEEK then
    if cost > limit then
      return huge, used
    elseif min(used, limit) > limit - cost then
      return left, used
    elseif op == TAKE then
      return 0, used + cost
    end
  elseif op == REFUND then
    return 0, max(0, used - cost)
  elseif op == DEBIT then
    return 0, debited(used, cost, limit)
  end
  return 0, used
end
