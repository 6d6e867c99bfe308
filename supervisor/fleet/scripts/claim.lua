-- ARGV: lease, launch, incarnation
local launch, incarnation = ARGV[2], ARGV[3]
sweep()
if not is_member(incarnation) then
  return {'ended'}
end
local owned_by, fence = owner(launch)
if owned_by and owned_by ~= incarnation then
  return {'owned', redis.call('HGET', NODES, owned_by), fence}
end
local left = tonumber(redis.call('HGET', STATE, 'opens')) - now
if not owned_by and left > 0 then
  return {'settling', left}
end
fence = next_fence()
own(launch, incarnation, fence)
forget_old()
return {'owned', redis.call('HGET', NODES, incarnation), fence}
