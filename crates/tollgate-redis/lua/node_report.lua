-- Stores a node report and counts the nodes. Arguments: node id, lifetime of the node in microseconds, its record, and
-- optionally report number, figures, state, milliseconds to keep the figures, milliseconds that the state is valid.

-- Microseconds that a node without reports stays listed.
local NODE_HISTORY = 86400 * 1000000

-- Stores figures and state. Figures with a lost reply are sent again under the same number and count once.
local function store_figures(reports, state, id, number, figures, text, history, valid)
  local millis = floor(now / 1000)
  local kept = redis.call('GET', state)
  if not kept or string.match(kept, '^%d+') ~= number then
    local oldest = string.format('%.0f', millis - tonumber(history))
    local function add()
      return redis.call('XADD', reports, 'MINID', '~', oldest, '*', 'node', id, 'figures', figures)
    end
    -- After a clock step back, new ids would continue in the future and no entry would ever be trimmed.
    if tonumber(string.match(add(), '^%d+')) > millis + 60000 then
      redis.call('DEL', reports)
      add()
    end
  end
  redis.call('PEXPIRE', reports, history)
  redis.call('SET', state, number .. ' ' .. text, 'PX', valid)
end

-- Removes nodes whose deadline passed a day ago.
local function remove_old_nodes(nodes, deadlines)
  local oldest = string.format('%.0f', now - NODE_HISTORY)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', oldest, 'LIMIT', 0, 100)) do
    redis.call('HDEL', nodes, id)
    redis.call('ZREM', deadlines, id)
  end
end

-- Returns the time, the previous record of the node or an empty text, the number of nodes that are up, the number of
-- all nodes, and the number of clean departures.
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
  if args[4] then
    store_figures(keys[4], keys[5], id, args[4], args[5], args[6], args[7], args[8])
  end
  local up = redis.call('ZCOUNT', deadlines, string.format('(%.0f', now), '+inf')
  local left = tonumber(redis.call('GET', departures)) or 0
  return { now, previous or '', up, redis.call('HLEN', nodes), left }
end
