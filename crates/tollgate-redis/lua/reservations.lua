-- Reservations: takes with a record, and their settlement. Mirrors memory/reservations.rs and algorithm/adjustment.rs. The
-- format of a record is that of reservation/encoding.rs. The functions are created for the first such plan.
--
-- A plan has the key of the record first, then one key for each token bucket, then the takes. The key of a bucket has the
-- sum of what settlements gave back to it since a time.
local RESERVE, SETTLE, EXTEND, READ, ADOPT = 12, 13, 14, 15, 16

-- An entry: a key whose text is not a counter.
local entry = { size = 0 }
function entry.limit(call, at)
  return { algorithm = entry, spec = nil }, at
end
function entry.open(_, number)
  local text = fetched[number] or redis.pcall('GET', keys[number])
  if type(text) == 'table' then
    return unavailable(keys[number], text.err)
  end
  return { key = keys[number], algorithm = entry, dirty = false, text = text }
end
function entry.write(s)
  if s.keep then
    redis.call('SET', s.key, s.text, 'PX', string.format('%d', s.keep))
  else
    redis.call('SET', s.key, s.text, 'KEEPTTL')
  end
end
algorithms.r = entry

local function reservations()
  local give_back, overdraw = adjustments()
  local OPEN, SETTLED = 'o', 's'
  local NO_PERMIT_ID = string.rep('\0', 16)
  local GIVE_BACK = 1

  -- What settlements gave back to a bucket: since when, and how much in grains.
  local function returned(sum)
    if sum.text then
      return decode('>I7I7', sum.text)
    end
    return 0, 0
  end

  -- Keeps the sum at least as long as the record of a new reservation, which notes it.
  local function note_returned(sum, retention)
    if not sum.text then
      sum.text, sum.keep, sum.dirty = encode('>I7I7', now, 0), retention, true
    elseif not sum.keep and redis.call('PTTL', sum.key) < retention then
      sum.keep, sum.dirty = retention, true
    elseif sum.keep then
      sum.keep = max(sum.keep, retention)
    end
  end

  local function add_returned(sum, grains)
    local since, total = returned(sum)
    if since > 0 and total + grains <= MAX_EXACT then
      sum.text = encode('>I7I7', since, total + grains)
    else
      sum.text = encode('>I7I7', now, min(grains, MAX_EXACT))
    end
    if not sum.keep and redis.call('PTTL', sum.key) < 0 then
      sum.keep = 86400000
    end
    sum.dirty = true
  end

  -- What others gave back since the take, or nothing if that is unknown.
  local function returned_after(sum, taken_at, since, total)
    local current_since, current_total = returned(sum)
    if current_since == since and current_total >= total then
      return current_total - total
    elseif since == 0 and current_since >= taken_at then
      return current_total
    end
  end

  -- Divides the takes of a plan into the record, the sums by number of the take, and the takes.
  local function divide(all)
    local sums, takes, number = {}, {}, 2
    while all[number] and all[number].limit.algorithm == entry do
      sums[number - 1] = all[number].state
      number = number + 1
    end
    local by_take, used = {}, 0
    for index = number, #all do
      takes[#takes + 1] = all[index]
      if all[index].limit.give then
        used = used + 1
        by_take[#takes] = sums[used]
      end
    end
    return all[1].state, by_take, takes
  end

  local function reply_text(text)
    reply[#reply + 1] = text
  end

  local function shortest_ttl(takes, ttl)
    for _, take in ipairs(takes) do
      if take.limit.ttl and take.cost > 0 then
        ttl = min(ttl, take.limit.ttl)
      end
    end
    return ttl
  end

  local function reserve(record, sums, takes, payload)
    if record.text then
      return reply_text('=' .. record.text)
    end
    local permit, ttl, retention, at = decode('>c16I7I7', payload)
    hold_ttl = ttl
    plans.take(takes, permit ~= NO_PERMIT_ID and permit or nil)
    hold_ttl = nil
    -- A plan without takes replies with the time.
    if #takes == 0 then
      reply_text(now)
    end
    plans.reply(takes)
    local allowed = not plans.first_error(takes)
    for _, take in ipairs(takes) do
      allowed = allowed and (take.mode ~= 0 or take.taken)
    end
    if not allowed then
      return
    end
    local expires = now + shortest_ttl(takes, ttl)
    local parts = { OPEN, encode('>I7I7B', now, expires, #takes) }
    for number, take in ipairs(takes) do
      local deficit, since, total = 0, 0, 0
      if sums[number] then
        note_returned(sums[number], retention)
        deficit, since, total = take.state.deficit, returned(sums[number])
      end
      parts[#parts + 1] = encode('>BI7I7I7', take.taken and 1 or 0, deficit, since, total)
    end
    local terms = string.sub(payload, at)
    parts[#parts + 1] = encode('>I4', #terms)
    parts[#parts + 1] = terms
    record.text, record.keep, record.dirty = table.concat(parts), retention, true
  end

  local function settle_take(take, sum, taken_at, change)
    local kind, amount, deficit, since, total = unpack(change)
    local s, l = take.state, take.limit
    if kind == 0 then
      return 0, 0
    elseif kind ~= GIVE_BACK then
      local taken = s.algorithm.is_list and try(s, overdraw, l, amount) or overdraw(s, l, amount)
      return 0, amount - (tonumber(taken) or 0)
    end
    local age = max(0, now - taken_at)
    if sum then
      local others = returned_after(sum, taken_at, since, total)
      deficit = others and max(0, deficit - others) or 0
    end
    local work = give_back[l.algorithm.letter]
    if not work then
      return 0, 0
    end
    local amount_back, grains
    if s.algorithm.is_list then
      amount_back = try(s, work, l, amount, age)
    else
      amount_back, grains = work(s, l, amount, age, deficit)
    end
    if grains and grains > 0 then
      add_returned(sum, grains)
    end
    return amount_back, 0
  end

  local function settle(record, sums, takes, payload)
    if not record.text then
      return reply_text('-')
    elseif string.sub(record.text, 1, 1) ~= OPEN then
      return reply_text('=' .. record.text)
    end
    local permit, taken_at, at = decode('>c16I7', payload)
    local outcomes = {}
    for number, take in ipairs(takes) do
      local change = {}
      change[1], change[2], change[3], change[4], change[5], at = decode('>BI7I7I7I7', payload, at)
      local back, uncollected = settle_take(take, sums[number], taken_at, change)
      if permit ~= NO_PERMIT_ID and take.limit.ttl then
        try(take.state, release, permit)
      end
      outcomes[number] = { back, uncollected }
      free(take.state.key)
    end
    if plans.first_error(takes) then
      return plans.reply(takes)
    end
    local finals = string.sub(payload, at)
    local parts = { SETTLED, string.sub(record.text, 2), encode('>I4', #finals), finals }
    for number, take in ipairs(takes) do
      local back, uncollected = unpack(outcomes[number])
      parts[#parts + 1] = encode('>I7I7', back, uncollected)
      push(step(take.state, take.limit, PEEK, 0))
      reply[#reply + 1], reply[#reply + 2] = back, uncollected
    end
    if #takes == 0 then
      reply_text(0)
    end
    record.text, record.dirty = table.concat(parts), true
  end

  -- Extends a reservation and its slots. Replies with the new expiry, or -1.
  local function extend(record, _, takes, payload)
    local permit, ttl, retention = decode('>c16I7I7', payload)
    if not record.text or string.sub(record.text, 1, 1) ~= OPEN then
      return reply_text(-1)
    end
    if permit ~= NO_PERMIT_ID then
      ttl = shortest_ttl(takes, ttl)
      if renew_all(takes, permit) == -1 then
        return reply_text(plans.first_error(takes) or -1)
      end
    end
    local before = decode('>I7', record.text, 9)
    local expires = max(before, now + ttl)
    local text = record.text
    record.text = string.sub(text, 1, 8) .. encode('>I7', expires) .. string.sub(text, 16)
    record.keep, record.dirty = retention, true
    reply_text(expires)
  end

  local function read(record)
    reply_text(record.text and '=' .. record.text or '-')
  end

  -- Keeps the record of a reservation that a node has granted.
  local function adopt(record, _, _, payload)
    if record.text then
      return reply_text('=' .. record.text)
    end
    local retention, at = decode('>I7', payload)
    record.text, record.keep, record.dirty = string.sub(payload, at), retention, true
    reply_text('-')
  end

  local verbs = { [RESERVE] = reserve, [SETTLE] = settle, [EXTEND] = extend, [READ] = read, [ADOPT] = adopt }

  -- Applies a plan at `at`, after its number of takes. Returns the position of the next plan.
  return function(verb, at, count)
    local rest, all, err = plans.read(at, count)
    local payload, after = decode('>I4c0', call, rest)
    if err then
      reply_text(err)
    else
      local record, sums, takes = divide(all)
      verbs[verb](record, sums, takes, payload)
    end
    return after
  end
end
