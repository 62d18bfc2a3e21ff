import { PATHS_LUA } from './paths-script.ts';

/**
 * Maximum number of files that one change forgets or removes to make room: Redis does nothing else meanwhile. After the
 * limit was lowered the following changes remove the rest.
 */
export const REMOVED_MAX = 1_000;

/** Bytes that each file counts beside its content and path: about what Redis needs for its metadata. */
const OVERHEAD_BYTES = 1024;

/** How often Redis has the path of a file. */
const PATH_COPIES = 4;

/**
 * KEYS: 1 metadata as JSON strings, by key; 2 contents by number; 3 and 4 the index of the keys; 5 the keys by their
 * number, which is their age; 6 `bytes` of all files, and the last `number`.
 */
export const LOCAL_FILES_LUA = `${PATHS_LUA}
-- Removes a file from its path; its content stays. Files of earlier versions count only their content.
local function lift(key)
  local file = cjson.decode(redis.call('HGET', KEYS[1], key))
  redis.call('HDEL', KEYS[1], key)
  leave(KEYS[3], KEYS[4], key)
  redis.call('ZREM', KEYS[5], key)
  redis.call('HINCRBY', KEYS[6], 'bytes', string.format('%d', -(file.usage or file.sizeBytes)))
  return file
end

local function remove(key)
  local file = lift(key)
  redis.call('HDEL', KEYS[2], file.number)
  return file
end

local function place(key, file)
  file.usage = string.format('%d', file.sizeBytes + ${OVERHEAD_BYTES} + ${PATH_COPIES} * #file.path)
  redis.call('HSET', KEYS[1], key, cjson.encode(file))
  enter(KEYS[3], KEYS[4], key)
  redis.call('ZADD', KEYS[5], file.number, key)
  redis.call('HINCRBY', KEYS[6], 'bytes', file.usage)
end

local function new_number()
  return string.format('%d', redis.call('HINCRBY', KEYS[6], 'number', 1))
end

-- Removes the oldest files beyond the limit. There is no total before the first file is stored.
local function make_room(bytes_max)
  for _ = 1, ${REMOVED_MAX} do
    if tonumber(redis.call('HGET', KEYS[6], 'bytes') or '0') <= tonumber(bytes_max) then return end
    local oldest = redis.call('ZRANGE', KEYS[5], 0, 0)[1]
    if not oldest then return end
    remove(oldest)
  end
end

-- Returns the rest of a path or key after its first names; those of a path and of its key may differ in length.
local function after(text, names)
  local slash = 1
  for _ = 1, names do
    slash = string.find(text, '/', slash + 1, true)
    if not slash then return '' end
  end
  return string.sub(text, slash)
end

-- Puts files at their paths below ARGV[2], whose path is ARGV[3]; replaces existing files.
local function settle(moving)
  for _, key in ipairs(at_and_below(KEYS[3], ARGV[2])) do remove(key) end
  local stem = ARGV[2] == '/' and '' or ARGV[2]
  for _, it in ipairs(moving) do
    it.file.path = ARGV[3] .. after(it.file.path, tonumber(ARGV[4]))
    place(stem .. after(it.key, tonumber(ARGV[4])), it.file)
  end
end
`;

/** ARGV: key. */
export const READ = `
local text = redis.call('HGET', KEYS[1], ARGV[1])
return text and redis.call('HGET', KEYS[2], cjson.decode(text).number)`;

/** ARGV: key of the folder. */
export const IN = `${PATHS_LUA}
return values(KEYS[1], directly_in(KEYS[4], ARGV[1]))`;

/** ARGV: key, and the maximum number of files if there is one. */
export const WITHIN = `${PATHS_LUA}
return values(KEYS[1], at_and_below(KEYS[3], ARGV[1], ARGV[2]))`;

/** ARGV: limit, key, facts, content. */
export const PUT = `${LOCAL_FILES_LUA}
local file = cjson.decode(ARGV[3])
file.number = new_number()
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then remove(ARGV[2]) end
redis.call('HSET', KEYS[2], file.number, ARGV[4])
place(ARGV[2], file)
make_room(ARGV[1])`;

/** ARGV: key, time. */
export const TOUCH = `
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return end
local file = cjson.decode(text)
file.modifiedMs = ARGV[2]
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(file))`;

/** ARGV: key. Removes the last files at the path and below. Returns their ids: less than the maximum if none is left. */
export const FORGET = `${LOCAL_FILES_LUA}
local keys = at_and_below(KEYS[3], ARGV[1])
local ids = {}
for index = #keys, math.max(#keys - ${REMOVED_MAX} + 1, 1), -1 do ids[#ids + 1] = remove(keys[index]).id end
return ids`;

/** ARGV: both keys, the new path, how many names the old one has, limit. */
export const MOVE = `${LOCAL_FILES_LUA}
local moving = {}
for index, key in ipairs(at_and_below(KEYS[3], ARGV[1])) do moving[index] = {key = key, file = lift(key)} end
settle(moving)
make_room(ARGV[5])`;

/**
 * ARGV: as MOVE, and ids for the copies. Returns the number of ids it needs, and changes nothing when there are
 * too few.
 */
export const COPY = `${LOCAL_FILES_LUA}
local keys = at_and_below(KEYS[3], ARGV[1])
if #keys > #ARGV - 5 then return #keys end
local copies = {}
for index, key in ipairs(keys) do
  local file = cjson.decode(redis.call('HGET', KEYS[1], key))
  local content = redis.call('HGET', KEYS[2], file.number)
  file.number = new_number()
  file.id = ARGV[5 + index]
  redis.call('HSET', KEYS[2], file.number, content)
  copies[index] = {key = key, file = file}
end
settle(copies)
make_room(ARGV[5])
return #keys`;
