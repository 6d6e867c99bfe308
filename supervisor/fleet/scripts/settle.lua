-- ARGV: lease. Nobody holds a lease of before.
redis.call('HSET', STATE, 'opens', '0')
