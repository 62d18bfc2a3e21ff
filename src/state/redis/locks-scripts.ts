/**
 * KEYS: 1 a hash with, of each token, the `lock` that was given, its `span` of time and its `place`;
 * 2 the places, all with score 0, so that they sort as texts: `key NUL scope depth NUL token`, scope and
 * depth by their first letters; 3 the tokens by the time of their end.
 */
const LOCKS_LUA = `
local function fact(what, token)
  return redis.call('HGET', KEYS[1], what .. ' ' .. token)
end

local function parts_of(place)
  local flags = string.find(place, '\\0', 1, true) + 1
  return string.sub(place, flags, flags), string.sub(place, flags + 1, flags + 1), string.sub(place, flags + 3)
end

local function at(key)
  return redis.call('ZRANGEBYLEX', KEYS[2], '[' .. key .. '\\0', '(' .. key .. '\\1')
end

-- "0" is the character after "/": between the two lies every name below, and nothing else.
local function below(key)
  local stem = key == '/' and '' or key
  return redis.call('ZRANGEBYLEX', KEYS[2], '[' .. stem .. '/', '(' .. stem .. '0')
end

local function append(list, more)
  for _, it in ipairs(more) do list[#list + 1] = it end
  return list
end

-- All of the root's own are in the range below it.
local function at_and_below(key)
  return append(key == '/' and {} or at(key), below(key))
end

-- From ARGV[first], the keys of a path and of the folders above it.
local function covering(first)
  if redis.call('ZCARD', KEYS[2]) == 0 then return {} end
  local found = at(ARGV[first])
  for index = first + 1, #ARGV do
    for _, place in ipairs(at(ARGV[index])) do
      local _, depth = parts_of(place)
      if depth == 'i' then found[#found + 1] = place end
    end
  end
  return found
end

local function told(places)
  local texts = {}
  for _, place in ipairs(places) do
    local _, _, token = parts_of(place)
    texts[#texts + 1] = fact('lock', token)
    texts[#texts + 1] = fact('span', token)
  end
  return texts
end

local function drop(token)
  local place = fact('place', token)
  if not place then return 0 end
  redis.call('HDEL', KEYS[1], 'lock ' .. token, 'span ' .. token, 'place ' .. token)
  redis.call('ZREM', KEYS[2], place)
  redis.call('ZREM', KEYS[3], token)
  return 1
end
`;

/** ARGV: now, token, scope, depth, end, lock, span, and the keys of the path and of the folders above it. */
export const CREATE = `${LOCKS_LUA}
local now, token, ends, lock, span, key = ARGV[1], ARGV[2], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local scope, depth = string.sub(ARGV[3], 1, 1), string.sub(ARGV[4], 1, 1)
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now)) do drop(expired) end
if fact('place', token) then return redis.error_reply('DAVGATE there is a lock with this token already') end
local met = covering(8)
if depth == 'i' then append(met, below(key)) end
for _, place in ipairs(met) do
  local other = parts_of(place)
  if scope == 'e' or other == 'e' then return told({place}) end
end
local place = key .. '\\0' .. scope .. depth .. '\\0' .. token
redis.call('HSET', KEYS[1], 'lock ' .. token, lock, 'span ' .. token, span, 'place ' .. token, place)
redis.call('ZADD', KEYS[2], 0, place)
redis.call('ZADD', KEYS[3], ends, token)
return {}`;

/** ARGV: now, token, end, span. */
export const REFRESH = `${LOCKS_LUA}
local ends = redis.call('ZSCORE', KEYS[3], ARGV[2])
if not ends or tonumber(ends) <= tonumber(ARGV[1]) then return false end
redis.call('HSET', KEYS[1], 'span ' .. ARGV[2], ARGV[4])
redis.call('ZADD', KEYS[3], ARGV[3], ARGV[2])
return fact('lock', ARGV[2])`;

/** ARGV: token. */
export const RELEASE = `${LOCKS_LUA}
return drop(ARGV[1])`;

/** ARGV: the keys of the path and of the folders above it. */
export const COVERING = `${LOCKS_LUA}
return told(covering(1))`;

/** ARGV: the key of the path. */
export const WITHIN = `${LOCKS_LUA}
return told(at_and_below(ARGV[1]))`;
