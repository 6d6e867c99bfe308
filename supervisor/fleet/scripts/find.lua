-- ARGV: lease, launch
sweep()
local owned_by, fence = owner(ARGV[2])
if owned_by then
  return {redis.call('HGET', NODES, owned_by), fence}
end
