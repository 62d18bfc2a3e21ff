import {
  type DeadProperties,
  type DeadProperty,
  PROPERTIES_BYTES_MAX,
  PropertiesFull,
} from '../properties.ts';
import { numberOf, textOrNothing, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { fieldsOf, inPieces } from './fields.ts';

/** Dead properties: a hash by id of JSON lists, and their version. A script makes each change, atomically. */
export function redisProperties({ connection, key }: DriveStore): DeadProperties {
  const properties = key('properties');
  const version = key('properties-version');
  const run = (text: string, ...words: string[]) => connection.script(text, [properties, version], words);

  return {
    async of(ids) {
      const found = await fieldsOf(connection, properties, ids);
      return new Map([...found].map(([id, text]) => [id, propertiesOf(text)]));
    },
    ids: async () => textsOf(await connection.command('HKEYS', properties)),
    isEmpty: async () => numberOf(await connection.command('HLEN', properties)) === 0,
    async change(id, changes) {
      const isDone = numberOf(await run(CHANGE, id, JSON.stringify(changes), String(PROPERTIES_BYTES_MAX)));
      if (isDone === 0)
        throw new PropertiesFull(
          `the properties of one resource may have at most ${PROPERTIES_BYTES_MAX} bytes together; remove some`,
        );
    },
    async copy(from, to) {
      await run(COPY, from, to);
    },
    async rename(from, to) {
      await run(RENAME, from, to);
    },
    async forget(ids) {
      await Promise.all(inPieces(ids).map((piece) => run(FORGET, ...piece)));
    },
    version: async () => Number(textOrNothing(await connection.command('GET', version)) ?? 0),
  };
}

/**
 * The version is the time in microseconds: it grows even if Redis has lost its last changes, so that two states never
 * have the same version.
 */
const GROW_LUA = `
local function grow()
  local time = redis.call('TIME')
  local version = tonumber(redis.call('GET', KEYS[2]) or '0')
  version = math.max(version + 1, time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[2], string.format('%.0f', version))
end
`;

/** A property that is set again keeps its position. Only strings pass through cjson, so nothing is rounded. */
const CHANGE = `${GROW_LUA}
local text = redis.call('HGET', KEYS[1], ARGV[1])
local list = text and cjson.decode(text) or {}
local count = #list
local places = {}
local function name_of(it) return it.namespace .. '\\0' .. it.name end
for place, it in ipairs(list) do places[name_of(it)] = place end
for _, change in ipairs(cjson.decode(ARGV[2])) do
  local name = name_of(change.set or change.remove)
  local place = places[name]
  if change.set then
    if not place then
      count = count + 1
      place = count
      places[name] = place
    end
    list[place] = change.set
  elseif place then
    list[place] = false
    places[name] = nil
  end
end
local left = {}
local bytes = 0
for place = 1, count do
  local it = list[place]
  if it then
    left[#left + 1] = it
    bytes = bytes + #it.namespace + #it.name + #it.xml
  end
end
if bytes > tonumber(ARGV[3]) then return 0 end
if #left > 0 then redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(left))
else redis.call('HDEL', KEYS[1], ARGV[1]) end
grow()
return 1`;

const COPY = `${GROW_LUA}
if ARGV[1] == ARGV[2] then return end
local text = redis.call('HGET', KEYS[1], ARGV[1])
if text then redis.call('HSET', KEYS[1], ARGV[2], text)
elseif redis.call('HDEL', KEYS[1], ARGV[2]) == 0 then return end
grow()`;

const RENAME = `${GROW_LUA}
local text = redis.call('HGET', KEYS[1], ARGV[1])
if ARGV[1] == ARGV[2] or not text then return end
redis.call('HSET', KEYS[1], ARGV[2], text)
redis.call('HDEL', KEYS[1], ARGV[1])
grow()`;

const FORGET = `${GROW_LUA}
local gone = 0
for _, id in ipairs(ARGV) do gone = gone + redis.call('HDEL', KEYS[1], id) end
if gone > 0 then grow() end`;

function propertiesOf(text: string): readonly DeadProperty[] {
  return JSON.parse(text); // as CHANGE wrote it
}
