-- ARGV: lease, launch, fence, digest, offer, entry as JSON
local _, launch, fence, digest, offer, entry = unpack(ARGV)
local before = redis.call('HGET', OFFERS, launch)
local old_digest
if before then
  local old_fence
  old_fence, old_digest = string.match(before, '^(%d+) (.+)$')
  if tonumber(old_fence) > tonumber(fence) then
    return 0
  end
end
redis.call('HSET', OFFERS, launch, fence .. ' ' .. digest)
if old_digest ~= digest then
  redis.call('HSET', TEXTS, digest, offer)
  redis.call('HINCRBY', USES, digest, 1)
  if old_digest then
    drop(old_digest)
  end
  put(entry)
end
return 1
