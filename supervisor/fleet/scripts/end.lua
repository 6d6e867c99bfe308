-- ARGV: lease, then digests of sessions, and for how many ms each would be good
redis.call('ZREMRANGEBYSCORE', OVER, '-inf', now)
for index = 2, #ARGV, 2 do
  redis.call('ZADD', OVER, now + tonumber(ARGV[index + 1]), ARGV[index])
end
