-- Block: refuses everything. The only state is a pause.
local block = { size = 0 }

function block.limit(call, at)
  return { algorithm = block, spec = nil }, at
end

function block.state(key)
  return { key = key, algorithm = block, dirty = false, reset = 0 }
end

function block.unused()
  return true
end

function block.text()
  return ''
end

function block.step()
  return huge, 0, 0
end

block.open, block.write = open_string, write_string
algorithms.b = block

-- Only in programs that list keys:
function block.expired()
  return true
end
