-- Exceptions for clients: what to do, for whom, and for `put` when it ends (0 for never) and what it says;
-- then the channel on which a change is told to every node, and what the audit says of it. What has ended is
-- as if it had never been.
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

-- One entry: who did what, and what was before and after where that is of an override. The oldest are
-- forgotten.
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
