-- Plans of several takes. What decides them is made when the first of them comes, since making it costs
-- as much as a decision and most calls have none.
local function several()
  -- A plan's takes, or why it cannot be decided.
  local function read_takes(at, count)
    local takes, wrong = {}
    for number = 1, count do
      local take = {}
      local key, limit
      take.mode, key, limit, take.cost, at = decode('>BI2I2I7', call, at)
      take.limit = limits[limit]
      take.state = opened[key] or open(key, take.limit.algorithm)
      if take.limit.stale then
        wrong = 'STALE'
      end
      wrong = wrong or take.state.error
      takes[number] = take
    end
    return at, takes, wrong
  end

  -- Whether a take is to happen: every key could be read, every enforced take passes, and so does every one
  -- of its own group.
  local function passes(take, takes)
    for _, other in ipairs(takes) do
      local matters = other.mode == 0 or other.mode == take.mode
      if other.state.error or (matters and other.wait ~= 0) then
        return false
      end
    end
    return true
  end

  local function ask_all(takes)
    for _, take in ipairs(takes) do
      take.wait, take.remaining, take.reset = step(take.state, take.limit, PEEK, take.cost)
    end
  end

  -- First asks every key, then takes from all of them or from none.
  local function take_all(takes, permit)
    ask_all(takes)
    local passing = {}
    for number, take in ipairs(takes) do
      passing[number] = passes(take, takes)
    end
    for number, take in ipairs(takes) do
      if passing[number] then
        take.wait, take.remaining, take.reset = step(take.state, take.limit, TAKE, take.cost, permit)
      end
    end
  end

  -- Why a plan could not be decided after all, if so.
  local function broken(takes)
    for _, take in ipairs(takes) do
      if take.state.error then
        return take.state.error
      end
    end
  end

  local function tell_all(takes)
    local wrong = broken(takes)
    if wrong then
      answer[#answer + 1] = wrong
      return
    end
    for _, take in ipairs(takes) do
      tell(take.wait, take.remaining, take.reset)
    end
  end

  return { read = read_takes, ask = ask_all, take = take_all, tell = tell_all, broken = broken }
end
