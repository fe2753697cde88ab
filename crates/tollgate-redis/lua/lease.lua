-- Leases: quota that a node takes in advance and spends within `hold` microseconds. See `lease` in the Rust library.
-- A lease takes at most this part of what is left, so that the last quota is not stranded on one node.
local LEASED_PART = 4

-- Returns the amounts to lease, or nothing if too little is left. All takes are allowed.
local function lease_amounts(takes, hold)
  local amounts, part = {}, 1
  for number, take in ipairs(takes) do
    local l, room = take.limit, take.remaining
    if l.give then
      -- What a token bucket refills until the lease ends cannot be leased.
      room = min(room, l.burst - ceil(l.give * hold / l.grains))
    end
    local amount = min(take.want, floor(room / LEASED_PART))
    if take.state.since or amount < 2 or amount < 2 * take.cost then
      return
    end
    amounts[number], part = amount, min(part, amount / take.want)
  end
  -- What one take lacks, the others cannot spend.
  for number, take in ipairs(takes) do
    amounts[number] = min(amounts[number], max(2, 2 * take.cost, ceil(take.want * part)))
  end
  return amounts
end

-- Leases from all keys, or takes the cost from all, or nothing. Sets `granted` to the leased amount.
local function lease_all(takes, hold)
  local allowed = true
  for _, take in ipairs(takes) do
    take.wait, take.remaining, take.reset = step(take.state, take.limit, PEEK, take.cost)
    take.granted = 0
    allowed = allowed and take.wait == 0 and not take.state.error
  end
  if not allowed then
    return
  end
  local amounts = lease_amounts(takes, hold)
  for number, take in ipairs(takes) do
    local amount = amounts and amounts[number] or take.cost
    take.granted = amounts and amount or 0
    local op = amounts and take.limit.give and LEASE or TAKE
    take.wait, take.remaining, take.reset = step(take.state, take.limit, op, amount, hold)
  end
end
