import { keyOf, type Path } from '../../util/path.ts';
import type { Placeholder, PlaceholderStore } from '../placeholders.ts';
import { textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { PATHS_LUA } from './paths-script.ts';

/** Placeholders: a hash by the key of the path, and its index. */
export function redisPlaceholders({ connection, key }: DriveStore): PlaceholderStore {
  const holds = key('holds');
  const keys = [holds, key('hold-places'), key('hold-folders'), key('changes')];
  const run = (text: string, ...words: string[]) => connection.script(text, keys, words);
  let lastEvent = 0;
  const found = async (text: string, path: Path) => {
    const [event, ...placeholders] = textsOf(await run(text, keyOf(path)));
    lastEvent = Number.parseInt(event ?? '0', 10);
    return placeholders.map(placeholderOf);
  };

  return {
    get: async (path) => (await found(GET, path))[0],
    in: (folder) => found(IN, folder),
    within: (path) => found(WITHIN, path),
    lastEvent: () => lastEvent,
    async put(placeholder) {
      await run(PUT, keyOf(placeholder.path), textOf(placeholder));
    },
    exchange: async (last, next) => (await run(EXCHANGE, keyOf(last.path), textOf(last), textOf(next))) === 1,
    forget: async ({ path, id }) => (await run(FORGET, keyOf(path), id)) === 1,
  };
}

/** Answers the id of the last event, which begins with its number, and the values of `keys`. */
const ANSWER_LUA = `${PATHS_LUA}
local function answer(keys)
  local found = values(KEYS[1], keys)
  local last = redis.call('XREVRANGE', KEYS[4], '+', '-', 'COUNT', 1)[1]
  table.insert(found, 1, last and last[1] or '0')
  return found
end`;

const GET = `${ANSWER_LUA}
return answer(redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 and { ARGV[1] } or {})`;

const IN = `${ANSWER_LUA}
return answer(directly_in(KEYS[3], ARGV[1]))`;

const WITHIN = `${ANSWER_LUA}
return answer(at_and_below(KEYS[2], ARGV[1]))`;

const PUT = `${PATHS_LUA}
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
enter(KEYS[2], KEYS[3], ARGV[1])`;

const EXCHANGE = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`;

const FORGET = `${PATHS_LUA}
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text or cjson.decode(text).id ~= ARGV[2] then return 0 end
redis.call('HDEL', KEYS[1], ARGV[1])
leave(KEYS[2], KEYS[3], ARGV[1])
return 1`;

/** The same for equal placeholders: `exchange` compares it. */
function textOf({ path, id, rev, modifiedMs, untilMs, owner, isBusy }: Placeholder): string {
  return JSON.stringify({ path, id, rev, modifiedMs, untilMs, owner, isBusy });
}

function placeholderOf(text: string): Placeholder {
  return JSON.parse(text); // as `put` wrote it
}
