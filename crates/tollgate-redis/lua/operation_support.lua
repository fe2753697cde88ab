-- Shared by the operations on counters and by reservations.
local plans = multi_take()
local freed

-- Marks the subject of a key: nodes must remove it from their refusal caches, and end its leases. The empty subject is `%` in a key.
local function free(key)
  local subject = string.match(key, '{(.*)}')
  freed[subject == '%' and '' or subject] = true
end

-- Returns 1 if the permit holds unexpired slots of all its keys, else 0.
local function holds_all(takes, permit)
  for _, take in ipairs(takes) do
    if try(take.state, holds, permit) ~= true then
      return 0
    end
  end
  return 1
end

-- Renews the slots of all keys of a permit, or none. Returns the earliest expiry, or -1.
local function renew_all(takes, permit)
  if holds_all(takes, permit) == 0 then
    return -1
  end
  local first = huge
  for _, take in ipairs(takes) do
    local till = try(take.state, renew, permit)
    first = min(first, till)
  end
  return first
end
