import { PATHS_LUA } from './paths-script.ts';

/**
 * KEYS: 1 a hash with the `lock`, the `span` of time and the `place` of each token; 2 the places, all with score 0, so
 * that they sort as texts: `key NUL scope depth NUL token`, scope and depth by their first letters; 3 the tokens by the
 * time of their end; 4 a hash with the claims of each request as JSON; 5 their places, `key NUL depth NUL id NUL
 * number`; 6 the requests' ids by the end of their lease; 7 the locks of each user, `principal NUL token`, all with score
 * 0; 8 withdrawn tokens by the end of the time in which their creation may still arrive. Times are in ms by the clock of Redis, the only one that all gateways share.
 */
const LOCKS_LUA = `${PATHS_LUA}
-- Redis 6 and older may refuse to write after TIME unless a script's effects are replicated instead of its text.
if redis.replicate_commands then redis.replicate_commands() end
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local function end_in(ms) return string.format('%.0f', now_ms + ms) end

local function fact(what, token)
  return redis.call('HGET', KEYS[1], what .. ' ' .. token)
end

-- Returns the fields after the key in a place.
local function fields_of(place)
  local fields = {}
  for field in string.gmatch(place, '%z([^%z]*)') do fields[#fields + 1] = field end
  return fields
end

local function scope_of(place) return string.sub(fields_of(place)[1], 1, 1) end
local function token_of(place) return fields_of(place)[2] end

local function is_deep(place)
  return string.sub(fields_of(place)[1], -1) == 'i'
end

local function places_at(places, key)
  return redis.call('ZRANGEBYLEX', places, '[' .. key .. '\\0', '(' .. key .. '\\1')
end

local function append(list, more)
  for _, it in ipairs(more) do list[#list + 1] = it end
  return list
end

-- Everything is below the root, so its range includes its own places.
local function places_within(places, key)
  return append(key == '/' and {} or places_at(places, key), below(places, key))
end

-- Returns the places at the key, and those above it with depth infinity.
local function places_covering(places, key)
  if redis.call('ZCARD', places) == 0 then return {} end
  local found = places_at(places, key)
  while key ~= '/' do
    key = parent_of(key)
    for _, place in ipairs(places_at(places, key)) do
      if is_deep(place) then found[#found + 1] = place end
    end
  end
  return found
end

-- Returns the lock, the span and the time left in ms of each lock that has not expired.
local function facts_of(places)
  local texts = {}
  for _, place in ipairs(places) do
    local token = token_of(place)
    local left_ms = (redis.call('ZSCORE', KEYS[3], token) or 0) - now_ms
    if left_ms > 0 then append(texts, {fact('lock', token), fact('span', token), string.format('%.0f', left_ms)}) end
  end
  return texts
end

local function drop(token)
  local place = fact('place', token)
  if not place then return 0 end
  redis.call('ZREM', KEYS[7], cjson.decode(fact('lock', token)).principal .. '\\0' .. token)
  redis.call('HDEL', KEYS[1], 'lock ' .. token, 'span ' .. token, 'place ' .. token)
  redis.call('ZREM', KEYS[2], place)
  redis.call('ZREM', KEYS[3], token)
  return 1
end

local function claim_place(claim, id, number)
  return table.concat({claim.key, claim.depth, id, tostring(number)}, '\\0')
end

local function end_claims(id)
  local text = redis.call('HGET', KEYS[4], id)
  if not text then return end
  for number, claim in ipairs(cjson.decode(text)) do redis.call('ZREM', KEYS[5], claim_place(claim, id, number)) end
  redis.call('HDEL', KEYS[4], id)
  redis.call('ZREM', KEYS[6], id)
end

-- Removes the claims of gateways that were killed.
local function end_old_claims()
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[6], '-inf', now_ms)) do end_claims(id) end
end

local function enter_claims(id, text, lease_ms)
  for number, claim in ipairs(cjson.decode(text)) do redis.call('ZADD', KEYS[5], 0, claim_place(claim, id, number)) end
  redis.call('HSET', KEYS[4], id, text)
  redis.call('ZADD', KEYS[6], end_in(lease_ms), id)
end

-- Returns a claim that conflicts with the lock, as JSON, with its id.
local function conflicting_claim(key, depth)
  if redis.call('ZCARD', KEYS[5]) == 0 then return false end
  end_old_claims()
  local met = places_covering(KEYS[5], key)
  if #met == 0 and depth == 'i' then met = below(KEYS[5], key) end
  if #met == 0 then return false end
  local fields = fields_of(met[1])
  local claim = cjson.decode(redis.call('HGET', KEYS[4], fields[2]))[tonumber(fields[3])]
  claim.id = fields[2]
  return cjson.encode(claim)
end
`;

/**
 * ARGV: token, scope, depth, time until its end in ms, lock, span, key of the path, user, and the maximum number of locks
 * on a resource and of a user. Returns `taken`; or `conflict`, a lock, its span and its time left in ms; or `claim` and
 * the claim; or `full` and the limit.
 */
export const CREATE = `${LOCKS_LUA}
local token, lasts_ms, lock, span, key, user = ARGV[1], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local scope, depth = string.sub(ARGV[2], 1, 1), string.sub(ARGV[3], 1, 1)
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now_ms)) do drop(expired) end
if redis.call('ZSCORE', KEYS[8], token) then return redis.error_reply('DAVGATE this lock was withdrawn') end
if fact('place', token) then return redis.error_reply('DAVGATE there is a lock with this token already') end
local met = places_covering(KEYS[2], key)
if depth == 'i' then append(met, below(KEYS[2], key)) end
for _, place in ipairs(met) do
  if scope == 'e' or scope_of(place) == 'e' then return append({'conflict'}, facts_of({place})) end
end
local claim = conflicting_claim(key, depth)
if claim then return {'claim', claim} end
if #places_covering(KEYS[2], key) >= tonumber(ARGV[9]) then return {'full', 'resource'} end
local held = redis.call('ZLEXCOUNT', KEYS[7], '[' .. user .. '\\0', '(' .. user .. '\\1')
if held >= tonumber(ARGV[10]) then return {'full', 'user'} end
local place = key .. '\\0' .. scope .. depth .. '\\0' .. token
redis.call('HSET', KEYS[1], 'lock ' .. token, lock, 'span ' .. token, span, 'place ' .. token, place)
redis.call('ZADD', KEYS[2], 0, place)
redis.call('ZADD', KEYS[3], end_in(lasts_ms), token)
redis.call('ZADD', KEYS[7], 0, user .. '\\0' .. token)
return {'taken'}`;

/** ARGV: id, claims, lease in ms. Returns for each claim the locks that cover it and those within it, as COVERING does. */
export const CLAIM = `${LOCKS_LUA}
end_old_claims()
enter_claims(ARGV[1], ARGV[2], ARGV[3])
local protections = {}
for _, claim in ipairs(cjson.decode(ARGV[2])) do
  protections[#protections + 1] = facts_of(places_covering(KEYS[2], claim.key))
  protections[#protections + 1] = claim.depth == 'i' and facts_of(places_within(KEYS[2], claim.key)) or {}
end
return protections`;

/** ARGV: id, claims, lease in ms. Returns whether they still existed. */
export const RENEW_CLAIMS = `${LOCKS_LUA}
local held = redis.call('HEXISTS', KEYS[4], ARGV[1])
enter_claims(ARGV[1], ARGV[2], ARGV[3])
return held`;

/** ARGV: id. */
export const END_CLAIMS = `${LOCKS_LUA}
end_claims(ARGV[1])`;

/** ARGV: token, time until its end in ms, span. Returns the lock, or nothing when it has ended. */
export const REFRESH = `${LOCKS_LUA}
local token = ARGV[1]
local ends = redis.call('ZSCORE', KEYS[3], token)
if not ends or tonumber(ends) <= now_ms then return false end
redis.call('HSET', KEYS[1], 'span ' .. token, ARGV[3])
redis.call('ZADD', KEYS[3], end_in(ARGV[2]), token)
return fact('lock', token)`;

/** ARGV: token. */
export const RELEASE = `${LOCKS_LUA}
return drop(ARGV[1])`;

/**
 * ARGV: token, and how long its creation may still arrive, in ms: on an older connection, which Redis may read later than
 * the one with this script. Returns whether it existed.
 */
export const WITHDRAW = `${LOCKS_LUA}
redis.call('ZREMRANGEBYSCORE', KEYS[8], '-inf', now_ms)
redis.call('ZADD', KEYS[8], end_in(ARGV[2]), ARGV[1])
redis.call('PEXPIRE', KEYS[8], ARGV[2])
return drop(ARGV[1])`;

/** ARGV: key of the path. Returns the lock, the span and the time left in ms of each lock. */
export const COVERING = `${LOCKS_LUA}
return facts_of(places_covering(KEYS[2], ARGV[1]))`;

/** ARGV: key of the path. Returns the locks as COVERING does. */
export const WITHIN = `${LOCKS_LUA}
return facts_of(places_within(KEYS[2], ARGV[1]))`;
