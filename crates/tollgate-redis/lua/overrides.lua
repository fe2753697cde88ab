-- Exceptions for clients: ARGV what to do, for whom, and for `put` when it ends (0 for never) and what it
-- says. A change is told to every node. What has ended is as if it had never been.
local verb, client = ARGV[1], ARGV[2]

local function told()
  redis.call('PUBLISH', ARGV[5], 'o' .. client)
end

local function current()
  local kept = redis.call('HGET', KEYS[1], client)
  if not kept or #kept < 7 then
    return false
  end
  local ends = decode('>I7', kept)
  if ends > 0 and ends <= now then
    redis.call('HDEL', KEYS[1], client)
    return false
  end
  return kept
end

local before = current()
if verb == 'put' then
  redis.call('HSET', KEYS[1], client, encode('>I7', tonumber(ARGV[3])) .. ARGV[4])
  told()
elseif verb == 'remove' and before then
  redis.call('HDEL', KEYS[1], client)
  told()
end
return before
