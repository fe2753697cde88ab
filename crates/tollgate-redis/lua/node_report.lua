-- Stores a node report and counts the nodes. Keys: nodes, deadlines, departures, reports, state of the node, times of
-- the last reports, grace time without silent nodes, event log, event count, report numbers, then the intervals of the history.
-- Arguments: node id, lifetime of the node in microseconds, its record, number of events, the events, and optionally
-- report number, figures, state, milliseconds to keep the figures, milliseconds that the state is valid, and the counts
-- of the intervals.

-- Microseconds that a node without reports stays listed.
local NODE_HISTORY = 86400 * 1000000
-- Microseconds without a report after which a node is silent.
local SILENT_AFTER = 5 * 1000000
-- Microseconds without a report of any node after which Redis was unavailable, rather than the nodes.
local MAX_PAUSE = 3 * 1000000

-- Returns whether figures with this number are stored. Figures with a lost reply are sent again under the same number,
-- possibly after a long outage.
local function is_known(numbers, id, number)
  if redis.call('HGET', numbers, id) == number then
    return true
  end
  redis.call('HSET', numbers, id, number)
  redis.call('PEXPIRE', numbers, NODE_HISTORY / 1000)
  return false
end

local function publish_figures(reports, id, figures, keep)
  local millis = floor(now / 1000)
  local oldest = string.format('%.0f', millis - tonumber(keep))
  local function add()
    return redis.call('XADD', reports, 'MINID', '~', oldest, '*', 'node', id, 'figures', figures)
  end
  -- After a clock step back, new ids would continue in the future and no entry would ever be trimmed.
  if tonumber(string.match(add(), '^%d+')) > millis + 60000 then
    redis.call('DEL', reports)
    add()
  end
end

-- Stores figures, state and history. `at` is the position of the report number in the arguments.
local function store_figures(id, at)
  local number, figures, text, keep, valid = unpack(args, at, at + 4)
  if not is_known(keys[10], id, number) then
    publish_figures(keys[4], id, figures, keep)
    at = at + 5
    for n = 11, #keys do
      at = add_interval(keys[n], at)
    end
  end
  redis.call('PEXPIRE', keys[4], keep)
  redis.call('SET', keys[5], number .. ' ' .. text, 'PX', valid)
end

-- Adds the events of the report, which happened some microseconds ago. Returns the position after them.
local function store_events(id)
  local at = 5
  for _ = 1, tonumber(args[4]) do
    local number, age, kind, detail = unpack(args, at, at + 3)
    add_event(keys[8], keys[9], now - tonumber(age), kind, id, number, detail)
    at = at + 4
  end
  return at
end

local function seconds_since(time)
  return string.format('%.0f s', (now - time) / 1000000)
end

-- Adds an event for each node that has just become silent. The set of last reports has only nodes that are not silent,
-- so a silent node is found once.
local function find_silent(seen)
  local limit = string.format('%.0f', now - SILENT_AFTER)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', limit, 'LIMIT', 0, 100)) do
    if redis.call('EXISTS', keys[7]) == 1 then
      return
    end
    redis.call('ZREM', seen, id)
    local record = redis.call('HGET', keys[1], id)
    if record and #record > 21 then
      local detail = string.format('no report for %s from %s', seconds_since(decode('>I7', record)),
        string.sub(record, 22))
      add_event(keys[8], keys[9], now, 'node_silent', id, string.format('%.0f', now), detail)
    end
  end
end

-- Notes the report of a node, and finds nodes that are silent or back.
local function watch_nodes(id, previous)
  local seen, time = keys[6], string.format('%.0f', now)
  local newest = redis.call('ZREVRANGEBYSCORE', seen, '+inf', '-inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
  local is_added = redis.call('ZADD', seen, time, id) == 1
  redis.call('PEXPIRE', seen, NODE_HISTORY / 1000)
  if not newest or tonumber(newest) < now - MAX_PAUSE then
    -- The other nodes get the time of a silent node to report again.
    redis.call('SET', keys[7], time, 'PX', SILENT_AFTER / 1000)
  end
  local last = previous and #previous > 7 and decode('>I7', previous) or now
  if is_added and last <= now - SILENT_AFTER then
    local detail = string.format('reports again after %s', seconds_since(last))
    add_event(keys[8], keys[9], now, 'node_back', id, time, detail)
  end
  find_silent(seen)
end

-- Removes nodes whose deadline passed a day ago.
local function remove_old_nodes(nodes, deadlines)
  local oldest = string.format('%.0f', now - NODE_HISTORY)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', oldest, 'LIMIT', 0, 100)) do
    redis.call('HDEL', nodes, id)
    redis.call('ZREM', deadlines, id)
    redis.call('HDEL', keys[10], id)
  end
end

-- Returns the time, the previous record of the node or an empty text, the number of nodes that are up, the number of
-- all nodes, the number of clean departures, and the number of events since Redis counts them.
local function report(call_keys, call_args)
  begin(call_keys, call_args)
  local nodes, deadlines, departures = keys[1], keys[2], keys[3]
  local id, node_lifetime = args[1], tonumber(args[2])
  local previous = redis.call('HGET', nodes, id)
  redis.call('HSET', nodes, id, encode('>I7I7', now, node_lifetime) .. args[3])
  if redis.call('ZADD', deadlines, string.format('%.0f', now + node_lifetime), id) == 1 then
    previous = false
  end
  remove_old_nodes(nodes, deadlines)
  redis.call('PEXPIRE', nodes, NODE_HISTORY / 1000)
  redis.call('PEXPIRE', deadlines, NODE_HISTORY / 1000)
  local figures = store_events(id)
  watch_nodes(id, previous)
  if args[figures] then
    store_figures(id, figures)
  end
  local up = redis.call('ZCOUNT', deadlines, string.format('(%.0f', now), '+inf')
  local left = tonumber(redis.call('GET', departures)) or 0
  local events = tonumber(redis.call('GET', keys[9])) or 0
  return { now, previous or '', up, redis.call('HLEN', nodes), left, events }
end
