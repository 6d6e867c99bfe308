-- ARGV: lease, then launches and what their owners are
for index = 2, #ARGV, 2 do
  if redis.call('HGET', OWNERS, ARGV[index]) == ARGV[index + 1] then
    redis.call('HDEL', OWNERS, ARGV[index])
  end
end
