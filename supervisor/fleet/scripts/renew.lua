-- ARGV: lease, incarnation, node as JSON if it says something new of itself
local incarnation, node = ARGV[2], ARGV[3]
sweep()
if not is_member(incarnation) then
  return {'ended'}
end
extend(incarnation)
if node ~= '' then
  redis.call('HSET', NODES, incarnation, node)
  put('{"type":"node","node":' .. node .. '}')
end
return {'renewed', position()}
