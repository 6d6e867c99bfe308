-- ARGV: lease, incarnation, name, place, node as JSON, then launches that it holds and their fences
local _, incarnation, name, place, node = unpack(ARGV, 1, 5)
sweep()
local other = redis.call('HGET', NAMES, name)
if other and other ~= incarnation then
  if cjson.decode(redis.call('HGET', NODES, other)).place ~= place then
    return {'taken'}
  end
  finish(other)
end
redis.call('HSET', NODES, incarnation, node)
redis.call('HSET', NAMES, name, incarnation)
extend(incarnation)
put('{"type":"node","node":' .. node .. '}')
local kept = {}
for index = 6, #ARGV, 2 do
  local launch, fence = ARGV[index], ARGV[index + 1]
  local owned_by = owner(launch)
  if not owned_by or owned_by == incarnation then
    own(launch, incarnation, fence)
    table.insert(kept, launch)
  end
end
return {'joined', position(), redis.call('HVALS', NODES), kept}
