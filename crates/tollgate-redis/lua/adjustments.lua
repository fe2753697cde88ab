-- Adjustments: what the settlement of a reservation changes at one key. Mirrors algorithm/adjustment.rs. The functions are
-- created for the first settlement.

-- Returns the functions that give back, by the letter of the algorithm, and the one that takes beyond the limit.
local function adjustments()
  -- Brings a bucket to now, under the numbers of the limit.
  local function bucket_settle(s, l)
    local deficit, ahead = s.deficit, s.at > now
    if deficit > 0 and not ahead then
      deficit = max(0, deficit - s.give * (now - s.at))
    end
    local renumbered = s.give ~= l.give or s.capacity ~= l.capacity
    if renumbered and deficit > 0 then
      deficit = rescale(deficit, s.capacity, l.capacity)
    end
    if ahead or renumbered then
      s.tick = nil
    end
    s.at, s.deficit, s.give, s.capacity, s.dirty = now, deficit, l.give, l.capacity, true
  end

  -- Each returns the amount that the key got back, and a bucket also the grains.
  local give_back = {
    t = function(s, l, amount, age, deficit)
      bucket_settle(s, l)
      local wanted = min(amount, l.burst) * l.grains
      local owed = max(0, max(wanted, deficit) - l.give * age)
      local grains = min(wanted, owed, s.deficit)
      s.deficit = s.deficit - grains
      return ceil(grains / l.grains), grains
    end,
    w = function(s, l, amount, age)
      log_settle(s, l.length)
      log_drop(s, l.length)
      if not s.newest then
        return 0
      end
      local taken_at = max(0, now - age)
      local before = log_search(s, function(at)
        return at < taken_at
      end)
      if before == log_length(s) then
        return 0
      end
      local base = s.base
      if before > 0 then
        local _, total = log_entry(s, before)
        base = total
      end
      local at, total = log_entry(s, before + 1)
      local removed = min(amount, total - base)
      if at ~= taken_at or removed == 0 then
        return 0
      end
      local later = redis.call('LRANGE', s.key, before + 1, -1)
      for index, element in ipairs(later) do
        local when, sum = decode('>I7I7', element)
        later[index] = encode('>I7I7', when, sum - removed)
      end
      if removed == total - base then
        table.remove(later, 1)
      end
      if before == 0 and #later == 0 then
        log_clear(s)
      else
        log_replace(s, before, later)
      end
      return removed
    end,
    c = function(s, l, amount, age)
      local length = l.length
      local last, kept_previous, kept_current, repaired = counter_settle(s, length)
      local start = window_start(last, length)
      local previous, current = clear_expired(start, length, kept_previous, kept_current)
      if start + length <= now then
        previous, current = current, 0
      end
      local into, returned = now % length, 0
      if age <= into then
        returned = min(amount, current)
        current = current - returned
      elseif age <= into + length then
        returned = min(amount, previous)
        previous = previous - returned
      end
      if returned > 0 then
        s.last, s.length, s.previous, s.current, s.dirty = now, length, previous, current, true
      elseif repaired then
        s.last, s.length, s.previous, s.current, s.dirty = last, length, kept_previous, kept_current, true
      end
      return returned
    end,
  }

  -- Windows that count: the take still counts if its window is the current one.
  local function give_back_in_window(s, l, amount, age)
    local _, remaining, left = s.algorithm.step(s, l, PEEK, 0)
    local used = l.count - remaining
    local start = l.start or now + left - l.length
    if used <= 0 or max(0, now - age) < start then
      return 0
    end
    local returned = min(amount, used)
    s.algorithm.step(s, l, REFUND, returned)
    return returned
  end
  give_back.f, give_back.a = give_back_in_window, give_back_in_window

  -- Takes beyond the limit: as a debit under a limit with a debt of another one. Returns the amount.
  local function overdraw(s, l, amount)
    if l.give then
      bucket_settle(s, l)
      local room = floor(max(0, min(2 * l.capacity, MAX_EXACT) - s.deficit) / l.grains)
      local taken = min(amount, room)
      s.deficit = s.deficit + taken * l.grains
      return taken
    end
    local doubled = setmetatable({ count = l.most or min(2 * l.count, MAX_EXACT) }, { __index = l })
    local room = doubled.count
    local _, remaining = s.algorithm.step(s, l, PEEK, 0)
    room = max(0, room - (l.count - remaining))
    local taken = min(amount, room)
    s.algorithm.step(s, doubled, DEBIT, taken, 0)
    return taken
  end

  return give_back, overdraw
end
