-- Stores, reads and removes the overrides of a client, at most one per rule. Arguments: verb, client, channel for
-- changes, audit entry; then for `put` three for each override: expiry in microseconds (0: never), rule (empty: none),
-- text; for `remove` the rule (empty: all). Reading removes expired overrides.
--
-- The hash has one field per client. One override is its expiry and its text. Several are the byte 255, then for each
-- its expiry, the length of the text, and the text. An expiry never begins with 255.
local function client_overrides(client)
  local kept, found, has_expired = redis.call('HGET', keys[1], client), {}, false
  local function add(ends, text)
    if ends > 0 and ends <= now then
      has_expired = true
    else
      found[#found + 1] = { ends = ends, text = text }
    end
  end
  if kept and string.byte(kept) == 255 then
    local at = 2
    while at < #kept do
      local ends, length, after = decode('>I7I4', kept, at)
      add(ends, string.sub(kept, after, after + length - 1))
      at = after + length
    end
  elseif kept and #kept >= 7 then
    add((decode('>I7', kept)), string.sub(kept, 8))
  end
  return found, has_expired
end

local function store_overrides(client, all)
  if #all == 0 then
    redis.call('HDEL', keys[1], client)
    return
  end
  local parts = {}
  if #all == 1 then
    parts[1] = encode('>I7', all[1].ends) .. all[1].text
  else
    parts[1] = '\255'
    for _, one in ipairs(all) do
      parts[#parts + 1] = encode('>I7I4', one.ends, #one.text) .. one.text
    end
  end
  redis.call('HSET', keys[1], client, table.concat(parts))
end

-- Returns the rule in the text of an override; empty for none.
local function rule_of(text)
  local is_valid, content = pcall(cjson.decode, text)
  local rule = is_valid and type(content) == 'table' and content.rule
  return type(rule) == 'string' and rule or ''
end

-- Appends an audit entry, with the override before and after the change if there is one. The stream is capped.
local function audit(entry, before, after)
  redis.call('XADD', keys[2], 'MAXLEN', '~', '10000', '*', 'entry', entry, 'old', before or '', 'new', after or '')
end

-- Replaces the override of the same rule, or adds it. Returns the text of the replaced one, or an empty text.
local function put_override(all, ends, rule, text)
  for _, one in ipairs(all) do
    if rule_of(one.text) == rule then
      local before = one.text
      one.ends, one.text = ends, text
      return before
    end
  end
  all[#all + 1] = { ends = ends, text = text }
  return ''
end

local function override(call_keys, call_args)
  begin(call_keys, call_args)
  local verb, client, channel, entry = args[1], args[2], args[3], args[4]
  if verb == 'record' then
    audit(entry)
    return {}
  end
  local all, has_changed = client_overrides(client)
  local replies, is_published = {}, false
  if verb == 'get' then
    for index, one in ipairs(all) do
      replies[index] = one.text
    end
  elseif verb == 'put' then
    for at = 5, #args, 3 do
      local before = put_override(all, tonumber(args[at]), args[at + 1], args[at + 2])
      audit(entry, before, args[at + 2])
      replies[#replies + 1] = before
    end
    has_changed, is_published = true, true
  elseif verb == 'remove' then
    local rest = {}
    for _, one in ipairs(all) do
      if args[5] == '' or rule_of(one.text) == args[5] then
        audit(entry, one.text)
        replies[#replies + 1] = one.text
        has_changed, is_published = true, true
      else
        rest[#rest + 1] = one
      end
    end
    all = rest
  end
  if has_changed then
    store_overrides(client, all)
  end
  if is_published then
    redis.call('PUBLISH', channel, 'o' .. client)
  end
  return replies
end
