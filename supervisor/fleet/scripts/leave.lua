-- ARGV: lease, incarnation
finish(ARGV[2])
