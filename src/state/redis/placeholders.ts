import { keyOf } from '../../util/path.ts';
import type { Placeholder, PlaceholderStore } from '../placeholders.ts';
import { textOrNothing, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { PATHS_LUA } from './paths-script.ts';

/** Placeholders: a hash by the key of the path, and its index. */
export function redisPlaceholders({ connection, key }: DriveStore): PlaceholderStore {
  const holds = key('holds');
  const keys = [holds, key('hold-places'), key('hold-folders')];
  const run = (text: string, ...words: string[]) => connection.script(text, keys, words);

  return {
    async get(path) {
      const text = textOrNothing(await connection.command('HGET', holds, keyOf(path)));
      return text === undefined ? undefined : placeholderOf(text);
    },
    in: async (folder) => textsOf(await run(IN, keyOf(folder))).map(placeholderOf),
    within: async (path) => textsOf(await run(WITHIN, keyOf(path))).map(placeholderOf),
    async put({ path, id, rev, modifiedMs, untilMs, owner }) {
      await run(PUT, keyOf(path), JSON.stringify({ path, id, rev, modifiedMs, untilMs, owner }));
    },
    async forget(path) {
      await run(FORGET, keyOf(path));
    },
  };
}

const IN = `${PATHS_LUA}
return values(KEYS[1], directly_in(KEYS[3], ARGV[1]))`;

const WITHIN = `${PATHS_LUA}
return values(KEYS[1], at_and_below(KEYS[2], ARGV[1]))`;

const PUT = `${PATHS_LUA}
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
enter(KEYS[2], KEYS[3], ARGV[1])`;

const FORGET = `${PATHS_LUA}
redis.call('HDEL', KEYS[1], ARGV[1])
leave(KEYS[2], KEYS[3], ARGV[1])`;

function placeholderOf(text: string): Placeholder {
  return JSON.parse(text); // as `put` wrote it
}
