-- Removes a node that shuts down, and counts its departure. Keys: nodes, deadlines, departures, times of the last
-- reports, event log, event count. Arguments: node id, record. Another node with the same id stays registered. Returns
-- whether the node was removed.
local function leave(call_keys, call_args)
  begin(call_keys, call_args)
  local nodes, deadlines, departures = keys[1], keys[2], keys[3]
  local kept = redis.call('HGET', nodes, args[1])
  if not kept or string.sub(kept, 15) ~= args[2] then
    return 0
  end
  local seen, node_lifetime = decode('>I7I7', kept)
  redis.call('HDEL', nodes, args[1])
  redis.call('ZREM', deadlines, args[1])
  redis.call('ZREM', keys[4], args[1])
  local detail = string.format('stopped serving %s', string.sub(kept, 22))
  add_event(keys[5], keys[6], now, 'node_left', args[1], string.format('%.0f', now), detail)
  if seen + node_lifetime > now then
    redis.call('INCR', departures)
    redis.call('PEXPIRE', departures, 86400 * 1000)
  end
  return 1
end
