-- Stores, reads and removes overrides. Arguments: verb, client, expiry in microseconds (0: never), text, channel
-- for changes, audit entry. Reading an expired override removes it.
local function current_override(client)
  local kept = redis.call('HGET', keys[1], client)
  if not kept or #kept < 7 then
    return false
  end
  local ends = decode('>I7', kept)
  if ends > 0 and ends <= now then
    redis.call('HDEL', keys[1], client)
    return false
  end
  return kept
end

-- Appends an audit entry, with the override before and after the change if there is one. The stream is capped.
local function audit(entry, before, after)
  redis.call('XADD', keys[2], 'MAXLEN', '~', '10000', '*',
    'entry', entry, 'old', before and string.sub(before, 8) or '', 'new', after or '')
end

local function override(call_keys, call_args)
  begin(call_keys, call_args)
  local verb, client = args[1], args[2]
  if verb == 'record' then
    audit(args[6], false, false)
    return false
  end
  local before = current_override(client)
  if verb == 'put' then
    redis.call('HSET', keys[1], client, encode('>I7', tonumber(args[3])) .. args[4])
    audit(args[6], before, args[4])
    redis.call('PUBLISH', args[5], 'o' .. client)
  elseif verb == 'remove' and before then
    redis.call('HDEL', keys[1], client)
    audit(args[6], before, false)
    redis.call('PUBLISH', args[5], 'o' .. client)
  end
  return before
end
