-- Plans of several takes. The functions are created for the first such plan: creating them costs as much as a
-- decision, and most calls need none.
local function multi_take()
  -- Returns the next position, the takes of a plan, and the error that prevents its decision, if any.
  local function read_takes(at, count)
    local takes, err = {}
    for number = 1, count do
      local take = {}
      local key, limit
      take.mode, key, limit, take.cost, at = decode('>BI2I2I7', call, at)
      take.limit = limits[limit]
      take.state = opened[key] or open(key, take.limit.algorithm)
      if take.limit.stale then
        err = 'STALE'
      end
      err = err or take.state.error
      takes[number] = take
    end
    return at, takes, err
  end

  -- Returns whether a take can happen: all keys are readable, all enforced takes pass, and all takes of its own
  -- shadow group pass.
  local function can_take(take, takes)
    for _, other in ipairs(takes) do
      local matters = other.mode == 0 or other.mode == take.mode
      if other.state.error or (matters and other.wait ~= 0) then
        return false
      end
    end
    return true
  end

  local function peek_all(takes)
    for _, take in ipairs(takes) do
      take.wait, take.remaining, take.reset = step(take.state, take.limit, PEEK, take.cost)
    end
  end

  -- Peeks at every key, then takes from all of them or from none.
  local function take_all(takes, permit)
    peek_all(takes)
    for _, take in ipairs(takes) do
      take.taken = can_take(take, takes)
    end
    for _, take in ipairs(takes) do
      if take.taken then
        take.wait, take.remaining, take.reset = step(take.state, take.limit, TAKE, take.cost, permit)
      end
    end
  end

  -- Returns the first error of a state, if any.
  local function first_error(takes)
    for _, take in ipairs(takes) do
      if take.state.error then
        return take.state.error
      end
    end
  end

  local function reply_all(takes)
    local err = first_error(takes)
    if err then
      reply[#reply + 1] = err
      return
    end
    for _, take in ipairs(takes) do
      push(take.wait, take.remaining, take.reset)
    end
  end

  return { read = read_takes, peek = peek_all, take = take_all, reply = reply_all, first_error = first_error }
end
