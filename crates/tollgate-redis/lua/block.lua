-- Block: refuses everything. Only a pause of it is ever kept.
local block = { size = 0 }

function block.limit(call, at)
  return {}, at
end

function block.read()
  return true
end

function block.fresh()
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
