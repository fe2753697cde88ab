-- Stores a node report. Arguments: node id, report number, figures, state, milliseconds to keep the figures,
-- milliseconds that the state is valid. A report with a lost reply is sent again under the same number and counts
-- once.
local function report(call_keys, call_args)
  begin(call_keys, call_args)
  local millis = math.floor(now / 1000)
  local kept = redis.call('GET', keys[2])
  if not kept or string.match(kept, '^%d+') ~= args[2] then
    local oldest = string.format('%.0f', millis - tonumber(args[5]))
    local function add()
      return redis.call('XADD', keys[1], 'MINID', '~', oldest, '*', 'node', args[1], 'figures', args[3])
    end
    -- After a clock step back, new ids would continue in the future and no entry would ever be trimmed.
    if tonumber(string.match(add(), '^%d+')) > millis + 60000 then
      redis.call('DEL', keys[1])
      add()
    end
  end
  redis.call('PEXPIRE', keys[1], args[5])
  redis.call('SET', keys[2], args[2] .. ' ' .. args[4], 'PX', args[6])
  return millis
end
