-- ARGV: lease, key, value, entry
redis.call('HSET', RECORDS, ARGV[2], ARGV[3])
put(ARGV[4])
