-- What every script of the fleet begins with, after `keep_ms`, how long a launch is known that nobody claims. KEYS are
-- always the same twelve, ARGV[1] is the length of a lease in ms.
local NODES, LEASES, NAMES, OWNERS, OFFERS, TEXTS, USES, FEED, STATE, OVER, RECORDS, CLAIMS = unpack(KEYS)
local lease_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- Put an entry, JSON text, into the feed. Positions have no gaps, so that a reader sees what it has missed.
local function put(entry)
  local position = redis.call('HINCRBY', STATE, 'position', 1)
  redis.call('XADD', FEED, 'MAXLEN', '~', 10000, string.format('%.0f-0', position), 'entry', entry)
  return position
end

local function position()
  return tonumber(redis.call('HGET', STATE, 'position') or '0')
end

-- What is in each key of these that may be empty, so that it is seen when one is gone.
local MARK = ''

-- Say whether nothing that is granted by has been lost: by an engine that was flushed, that evicts, or whose keys
-- somebody deletes. Each key goes as a whole.
local function is_whole()
  return redis.call('ZSCORE', LEASES, MARK)
    and redis.call('HLEN', NODES) == redis.call('ZCARD', LEASES) - 1
    and redis.call('HEXISTS', NAMES, MARK) == 1
    and redis.call('HEXISTS', OWNERS, MARK) == 1
    and redis.call('HEXISTS', RECORDS, MARK) == 1
    and redis.call('ZSCORE', OVER, MARK)
    and redis.call('XLEN', FEED) > 0
end

local function clear(key)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    redis.call('HDEL', key, field)
  end
end

-- Begin as an engine that knows nothing. Nobody is a member: who is one still joins again, with what it owns. Nothing
-- new is granted until all leases of before have ended, and readers of the feed read everything anew: what they had
-- read is before the present time in µs, as there are fewer entries than that.
local function begin_anew(run)
  clear(NODES)
  clear(NAMES)
  redis.call('ZREMRANGEBYSCORE', LEASES, '-inf', '+inf')
  redis.call('ZADD', LEASES, '+inf', MARK)
  redis.call('ZADD', OVER, '+inf', MARK)
  for _, key in ipairs({NAMES, OWNERS, RECORDS}) do
    redis.call('HSET', key, MARK, '')
  end
  local last = redis.call('XREVRANGE', FEED, '+', '-', 'COUNT', 1)[1]
  local newest = math.max(position() + 1000000, last and tonumber(string.match(last[1], '^%d+')) or 0, now_us)
  local opens = string.format('%.0f', now + lease_ms)
  redis.call('HSET', STATE, 'run', run, 'opens', opens, 'position', string.format('%.0f', newest))
  put('{"type":"anew"}')
end

-- See whether the engine may have forgotten something. Another run of the server has: what was written last may not be
-- on the disk, or had not reached the one that takes its place.
local function see_run()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  if redis.call('HGET', STATE, 'run') ~= run or not is_whole() then
    begin_anew(run)
  end
end

-- End a lease.
local function finish(incarnation)
  redis.call('ZREM', LEASES, incarnation)
  local node = redis.call('HGET', NODES, incarnation)
  if node then
    local name = cjson.decode(node).name
    redis.call('HDEL', NODES, incarnation)
    if redis.call('HGET', NAMES, name) == incarnation then
      redis.call('HDEL', NAMES, name)
    end
    put('{"type":"gone","incarnation":' .. cjson.encode(incarnation) .. '}')
  end
end

-- End the leases that are over.
local function sweep()
  for _, incarnation in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, 100)) do
    finish(incarnation)
  end
end

local function is_member(incarnation)
  local ends = redis.call('ZSCORE', LEASES, incarnation)
  return ends and tonumber(ends) > now
end

local function extend(incarnation)
  redis.call('ZADD', LEASES, now + lease_ms, incarnation)
end

-- Return the incarnation that owns a launch, and its fence; nothing if none does whose lease runs.
local function owner(launch)
  local text = redis.call('HGET', OWNERS, launch)
  if text then
    local fence, incarnation = string.match(text, '^(%d+) (.+)$')
    if is_member(incarnation) then
      return incarnation, fence
    end
  end
end

local function own(launch, incarnation, fence)
  redis.call('HSET', OWNERS, launch, fence .. ' ' .. incarnation)
  redis.call('ZADD', CLAIMS, now, launch)
end

-- Drop a text that one launch offers no longer, if no other one does.
local function drop(digest)
  if redis.call('HINCRBY', USES, digest, -1) <= 0 then
    redis.call('HDEL', USES, digest)
    redis.call('HDEL', TEXTS, digest)
  end
end

-- Forget launches that nobody owns and that were not claimed for long: a few each time that one is claimed, so that
-- there are no more than were claimed within that time.
local function forget_old()
  for _, launch in ipairs(redis.call('ZRANGEBYSCORE', CLAIMS, '-inf', now - keep_ms, 'LIMIT', 0, 10)) do
    if owner(launch) then
      redis.call('ZADD', CLAIMS, now, launch)
    else
      local offer = redis.call('HGET', OFFERS, launch)
      if offer then
        drop(string.match(offer, '^%d+ (.+)$'))
      end
      redis.call('HDEL', OFFERS, launch)
      redis.call('HDEL', OWNERS, launch)
      redis.call('ZREM', CLAIMS, launch)
    end
  end
end

-- Return a fence that is larger than all before, also than those of a run that is forgotten.
local function next_fence()
  local fence = math.max(tonumber(redis.call('HGET', STATE, 'fence') or '0') + 1, now_us)
  local text = string.format('%.0f', fence)
  redis.call('HSET', STATE, 'fence', text)
  return text
end

see_run()
