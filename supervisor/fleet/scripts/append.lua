-- ARGV: lease, then entries as JSON
for index = 2, #ARGV do
  put(ARGV[index])
end
