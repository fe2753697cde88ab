-- A node tells what it counted since it last did, and how it fares now: its id, the number of this beat, both texts, for
-- how many milliseconds the first is kept and the second holds. A beat whose answer was lost is told again under the
-- same number, and counts once.
local function report(call_keys, call_args)
  begin(call_keys, call_args)
  local millis = math.floor(now / 1000)
  local kept = redis.call('GET', keys[2])
  if not kept or string.match(kept, '^%d+') ~= args[2] then
    local oldest = string.format('%.0f', millis - tonumber(args[5]))
    local function add()
      return redis.call('XADD', keys[1], 'MINID', '~', oldest, '*', 'node', args[1], 'figures', args[3])
    end
    -- A clock that was put back: ids would go on from the future, and nothing would ever be old.
    if tonumber(string.match(add(), '^%d+')) > millis + 60000 then
      redis.call('DEL', keys[1])
      add()
    end
  end
  redis.call('PEXPIRE', keys[1], args[5])
  redis.call('SET', keys[2], args[2] .. ' ' .. args[4], 'PX', args[6])
  return millis
end
