-- Leases: quota that a node takes in advance and spends within `hold` microseconds. Mirrors lease/amounts.rs and
-- memory/lease.rs.

-- A lease takes at most this part of what is left, so that the last quota is not stranded on one node.
local LEASED_PART = 4

-- Returns the amounts to lease, or nothing if too little is left. All takes are allowed. A paused key has nothing left.
local function lease_amounts(takes, hold)
  local most = {}
  for number, take in ipairs(takes) do
    local l, room = take.limit, take.remaining
    if l.give then
      -- What a token bucket refills until the lease ends cannot be leased.
      room = min(room, l.burst - ceil(l.give * hold / l.grains))
    end
    most[number] = min(take.want, floor(room / LEASED_PART))
    if most[number] < 2 or most[number] < 2 * take.cost then
      return
    end
  end
  -- What one take lacks, the others cannot spend: all get the same part of what they want.
  local amounts = {}
  for number, take in ipairs(takes) do
    local amount = most[number]
    for other_number, other in ipairs(takes) do
      amount = min(amount, mul_div_ceil(most[other_number], take.want, other.want))
    end
    amounts[number] = min(most[number], max(2, 2 * take.cost, amount))
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
