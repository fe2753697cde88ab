-- The event log: a sorted set of events by time in microseconds. A member is the kind, the node, a number that makes it
-- unique, and the text, separated by tabs.

-- Microseconds that an event is kept, and the maximum number of events.
local EVENT_HISTORY = 86400 * 1000000
local MAX_EVENTS = 10000

-- Adds an event unless it is there already: an event with a lost reply is sent again.
local function add_event(log, count, at, kind, node, number, detail)
  local member = table.concat({ kind, node, number, detail }, '\t')
  if redis.call('ZADD', log, 'NX', string.format('%.0f', at), member) == 0 then
    return
  end
  redis.call('ZREMRANGEBYSCORE', log, '-inf', string.format('(%.0f', now - EVENT_HISTORY))
  redis.call('ZREMRANGEBYRANK', log, 0, -MAX_EVENTS - 1)
  redis.call('INCR', count)
  redis.call('PEXPIRE', log, EVENT_HISTORY / 1000)
  redis.call('PEXPIRE', count, EVENT_HISTORY / 1000)
end
