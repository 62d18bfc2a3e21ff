/**
 * KEYS: 1 the waiting ids by the time of their first question; 2 the times of their last one; 3 the id whose turn it is, a
 * key that expires with the turn; 4 for each kind, how many entries the next turn is expected to have, and since when; the
 * `kind` and number (`count`) of the entries of the present turn; how often the last stagings waited in `vain`. ARGV: 1 the
 * prefix of the batches: a hash for each id with its `entries` and their `count`, the id of its `taker`, and the `answer`;
 * 2 the id. Times are in ms by the clock of Redis. The prefix has the hash tag of the keys, as a Redis cluster requires.
 */
const TURNS_LUA = `
local function batch_of(id) return ARGV[1] .. id end

local function leave_line(id)
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
end
`;

/**
 * ARGV: 3 the entries, empty if the id has asked before; 4 their number; 5 `repeated` if the id has asked before, `gathering`
 * if it shall wait unless it is known for how many entries; 6 how long a turn lasts, and 7 how long a waiting id may be silent, in ms; 8 the maximum number
 * of entries of a turn; 9 how long a batch is kept, in ms; 10 the kind of the entries: only those of one kind are taken
 * together; 11 how long the first in the line waits for as many entries as are expected, in ms, and 12 for how long they are
 * expected. Answers `waiting` with the number of waiting ids.
 */
export const ENTER_SCRIPT = `${TURNS_LUA}
local id, entries, count = ARGV[2], ARGV[3], tonumber(ARGV[4])
local holder = redis.call('GET', KEYS[3])
local function waiting() return {'waiting', tostring(redis.call('ZCARD', KEYS[1]))} end

if count > 0 then
  local known = redis.call('HMGET', batch_of(id), 'answer', 'taker', 'count')
  if known[1] then
    redis.call('DEL', batch_of(id))
    return {'answered', known[1]}
  end
  if known[2] and known[2] == holder then return waiting() end
  -- A Redis that has lost its data does not know who has taken the batch.
  if known[2] or (ARGV[5] == 'repeated' and not known[3]) then
    redis.call('DEL', batch_of(id))
    return {'lost'}
  end
  if not known[3] then
    redis.call('HSET', batch_of(id), 'entries', entries, 'count', count, 'kind', ARGV[10])
    redis.call('PEXPIRE', batch_of(id), ARGV[9])
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- Finer than a millisecond, so that the line is in the order of arrival.
redis.call('ZADD', KEYS[1], 'NX', time[1] * 1000 + time[2] / 1000, id)
redis.call('HSET', KEYS[2], id, now)
redis.call('PEXPIRE', KEYS[1], ARGV[9])
redis.call('PEXPIRE', KEYS[2], ARGV[9])
if holder then return waiting() end

for _, other in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local seen = tonumber(redis.call('HGET', KEYS[2], other) or 0)
  if now - seen > tonumber(ARGV[7]) then leave_line(other) end
end
local line = redis.call('ZRANGE', KEYS[1], 0, -1)

local kind, total, taken, answer = ARGV[10], count, {}, {'granted'}
for _, other in ipairs(count > 0 and line or {}) do
  local batch = redis.call('HMGET', batch_of(other), 'entries', 'count', 'kind')
  local size = tonumber(batch[2] or 0)
  if other ~= id and size > 0 and total + size <= tonumber(ARGV[8]) and batch[3] == kind then
    total = total + size
    taken[#taken + 1] = other
    answer[#answer + 1] = other
    answer[#answer + 1] = batch[1]
  end
end
-- Whoever takes the batch of the first in the line along goes before it: nobody waits longer for that.
if line[1] ~= id and taken[1] ~= line[1] then return waiting() end
if count > 0 then
  local expected = tonumber(redis.call('HGET', KEYS[4], kind) or 0)
  if expected == 0 and ARGV[5] == 'gathering' then return waiting() end
  local since = tonumber(redis.call('HGET', KEYS[4], 'since_' .. kind) or 0)
  local waited = now - math.max(since, tonumber(redis.call('ZSCORE', KEYS[1], line[1])))
  if total < expected and waited < tonumber(ARGV[11]) then return waiting() end
  redis.call('HDEL', KEYS[4], kind, 'since_' .. kind)
  if kind == 'staging' then
    if total < expected then redis.call('HINCRBY', KEYS[4], 'vain', 1) else redis.call('HDEL', KEYS[4], 'vain') end
  end
  -- Half of the last ones at least: a gateway that has missed a turn comes to the next one.
  expected = math.max(total, math.floor(expected / 2))
  if expected > count then redis.call('HSET', KEYS[4], kind, expected) end
  redis.call('HSET', KEYS[4], 'kind', kind, 'count', total)
  redis.call('PEXPIRE', KEYS[4], ARGV[12])
else
  redis.call('HDEL', KEYS[4], 'kind', 'count')
end

redis.call('SET', KEYS[3], id, 'PX', ARGV[6])
redis.call('DEL', batch_of(id))
leave_line(id)
for _, other in ipairs(taken) do
  redis.call('HSET', batch_of(other), 'taker', id)
  redis.call('HDEL', batch_of(other), 'entries')
  leave_line(other)
end
return answer
`;

/** ARGV: 3 how long the turn lasts from now on, in ms. */
export const RENEW_SCRIPT = `
if redis.call('GET', KEYS[3]) == ARGV[2] then redis.call('PEXPIRE', KEYS[3], ARGV[3]) end
return 0
`;

/**
 * ARGV: 3 for how long entries are expected, in ms; from 4 on, each id whose batch was taken, and the answer to it. What was
 * staged is committed at once, and the writers of what was committed come back at once. Those who wait for a turn of the other
 * kind wait for them: gateways in two groups, whose turns alternate, would need twice the calls.
 */
export const LEAVE_SCRIPT = `${TURNS_LUA}
local function expect_next()
  local kind, count = unpack(redis.call('HMGET', KEYS[4], 'kind', 'count'))
  if not kind then return end
  redis.call('HDEL', KEYS[4], 'kind', 'count')
  local next_kind = kind == 'commit' and 'staging' or 'commit'
  -- Does not wait in every turn for writers that always come too late.
  if next_kind == 'staging' and tonumber(redis.call('HGET', KEYS[4], 'vain') or 0) > 1 then
    redis.call('HDEL', KEYS[4], 'vain')
    return
  end
  local expected, is_alone = tonumber(count), not ARGV[4]
  for _, other in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    local batch = redis.call('HMGET', batch_of(other), 'count', 'kind')
    if batch[2] == next_kind then expected, is_alone = expected + batch[1], false end
  end
  if is_alone then return end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('HSET', KEYS[4], next_kind, expected, 'since_' .. next_kind, now)
  redis.call('PEXPIRE', KEYS[4], ARGV[3])
end

leave_line(ARGV[2])
if redis.call('GET', KEYS[3]) == ARGV[2] then
  redis.call('DEL', KEYS[3])
  expect_next()
end
-- A batch that another gateway has taken is its to answer, but nobody asks any more.
redis.call('DEL', batch_of(ARGV[2]))
for index = 4, #ARGV, 2 do
  local batch = batch_of(ARGV[index])
  if redis.call('HGET', batch, 'taker') == ARGV[2] then redis.call('HSET', batch, 'answer', ARGV[index + 1]) end
end
return 0
`;
