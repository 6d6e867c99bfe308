-- What every script of the fleet begins with, after `keep_ms`, how long a launch is known that nobody claims. KEYS are
-- always the same twelve, ARGV[1] is the length of a lease in ms.
local NODES, LEASES, NAMES, OWNERS, OFFERS, TEXTS, USES, FEED, STATE, OVER, RECORDS, CLAIMS = unpack(KEYS)
local lease_ms = tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Put an entry, JSON text, into the feed. Positions have no gaps, so that a reader sees what it has missed.
local function put(entry)
  local position = redis.call('HINCRBY', STATE, 'position', 1)
  redis.call('XADD', FEED, 'MAXLEN', '~', 10000, position .. '-0', 'entry', entry)
  return position
end

local function position()
  return tonumber(redis.call('HGET', STATE, 'position') or '0')
end

-- See whether this is another run of the server. Then it may have lost what it knew: nothing new is granted before all
-- leases of before have ended, and readers of the feed read everything anew. `again`: a node says that it was a member.
local function see_run(again)
  local info = redis.call('INFO', 'server')
  local run = string.match(info, 'run_id:(%x+)')
  local known = redis.call('HGET', STATE, 'run')
  if known == run then
    return
  end
  local opens = now - tonumber(string.match(info, 'uptime_in_seconds:(%d+)')) * 1000 + lease_ms
  if again and not known then
    opens = now + lease_ms
  end
  redis.call('HSET', STATE, 'run', run, 'opens', string.format('%.0f', opens))
  redis.call('HINCRBY', STATE, 'position', 1000000)
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
  local fence = math.max(tonumber(redis.call('HGET', STATE, 'fence') or '0') + 1, now * 1000)
  local text = string.format('%.0f', fence)
  redis.call('HSET', STATE, 'fence', text)
  return text
end
