/**
 * Lua functions for data that is found by path. The index consists of two sorted sets with all scores 0: one has the
 * keys of the paths (`keyOf`), which sort as texts so that everything below a folder is one range; the other has
 * `folder NUL key`, for the direct children of a folder.
 */
export const PATHS_LUA = `
local function parent_of(key)
  return string.match(key, '^(.+)/[^/]*$') or '/'
end

local function enter(places, folders, key)
  redis.call('ZADD', places, 0, key)
  redis.call('ZADD', folders, 0, parent_of(key) .. '\\0' .. key)
end

local function leave(places, folders, key)
  redis.call('ZREM', places, key)
  redis.call('ZREM', folders, parent_of(key) .. '\\0' .. key)
end

-- "0" is the character after "/", so this range has all paths below the folder; with a maximum only the first.
local function below(places, key, max)
  local stem = key == '/' and '' or key
  return redis.call('ZRANGEBYLEX', places, '[' .. stem .. '/', '(' .. stem .. '0', 'LIMIT', 0, max or -1)
end

local function at_and_below(places, key, max)
  local found = below(places, key, max)
  if key ~= '/' and redis.call('ZSCORE', places, key) then table.insert(found, 1, key) end
  if max and #found > tonumber(max) then table.remove(found) end
  return found
end

local function directly_in(folders, folder)
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', folders, '[' .. folder .. '\\0', '(' .. folder .. '\\1')) do
    local key = string.sub(member, #folder + 2)
    -- The root is its own parent, but not its own child.
    if key ~= folder then found[#found + 1] = key end
  end
  return found
end

local function values(hash, keys)
  local found = {}
  for index, key in ipairs(keys) do found[index] = redis.call('HGET', hash, key) end
  return found
end
`;
