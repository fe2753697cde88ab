-- What the two kinds of fixed windows share: as count and stamp in fixed_window.rs.

-- When a debit happened, and what is left of it: from before `earliest` it matters no more.
local function stamped(age, cost, earliest)
  local before = now - age
  if before >= earliest then
    return before, DEBIT, cost
  end
  return now, PEEK, 0
end

-- The wait, and what `op` makes of a count with `left` microseconds to its window's end.
local function counted(limit, used, left, op, cost)
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
