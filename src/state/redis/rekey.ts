import { freePath, keyOf, type Path } from '../../util/path.ts';
import { listOf, textOf, textOrNothing, textsOf } from './answers.ts';
import type { Connection } from './connection.ts';
import { type DriveStore, driveStore } from './drive-keys.ts';
import { LOCAL_FILES_LUA } from './local-files-scripts.ts';
import { PATHS_LUA } from './paths-script.ts';

/** Key that exists when no data has an outdated key any more. */
const VERSION_KEY = 'davgate:keys';
const VERSION = '2';

const PLACES = /^davgate:\{(.*)\}:(?:hold|aside|lock)-places$/s;

/**
 * Moves data with an outdated key to its current key: an older folding left seven letters with a mark (`J̌` for one) in
 * another form. Several gateways may do it at once, because each step is one script that checks whether its work is
 * already done. A placeholder or local file whose new key is taken is renamed; two locks whose keys become equal stay
 * both valid.
 */
export async function rekeyDrives(connection: Connection): Promise<void> {
  if (textOrNothing(await connection.command('GET', VERSION_KEY)) === VERSION) return;
  for (const drive of await drivesOf(connection)) {
    const store = driveStore(connection, drive);
    await rekeyFiles(store, 'holds', ['holds', 'hold-places', 'hold-folders'], MOVE_PLACEHOLDER);
    await rekeyFiles(store, 'asides', LOCAL_FILE_KEYS, MOVE_LOCAL_FILE);
    await rekeyLocks(store);
  }
  // A full Redis refuses this; the next start then searches again, and finds nothing to do.
  await connection.command('SET', VERSION_KEY, VERSION).catch(() => {});
}

const LOCAL_FILE_KEYS = [
  'asides',
  'aside-contents',
  'aside-places',
  'aside-folders',
  'aside-ages',
  'aside-totals',
] as const;

/** Returns the names of the drives with data. */
async function drivesOf(connection: Connection): Promise<ReadonlySet<string>> {
  const drives = new Set<string>();
  for (const command of connection.primaries()) {
    let cursor = '0';
    do {
      const [next, keys] = listOf(
        await command('SCAN', cursor, 'MATCH', 'davgate:{*}:*-places', 'COUNT', '1000'),
      );
      for (const key of textsOf(keys)) {
        const drive = PLACES.exec(key)?.[1];
        if (drive !== undefined) drives.add(drive);
      }
      cursor = textOf(next);
    } while (cursor !== '0');
  }
  return drives;
}

async function rekeyFiles(
  { connection, key }: DriveStore,
  table: string,
  names: readonly string[],
  script: string,
): Promise<void> {
  const texts = await fieldsOf(connection, key(table));
  for (const [outdated, text] of [...texts]) {
    const facts: { readonly path: Path } = JSON.parse(text); // as the store wrote it
    const { path } = facts;
    if (keyOf(path) === outdated) continue;
    const free = freePath(path, (candidate) => !texts.has(keyOf(candidate)));
    texts.set(keyOf(free), text);
    await connection.script(script, names.map(key), [
      ...[outdated, keyOf(free), free],
      JSON.stringify({ ...facts, path: free }),
    ]);
  }
}

async function rekeyLocks({ connection, key }: DriveStore): Promise<void> {
  const facts = await fieldsOf(connection, key('locks'));
  for (const [name, text] of facts) {
    if (!name.startsWith('lock ')) continue;
    const token = name.slice('lock '.length);
    const { root }: { root: Path } = JSON.parse(text); // as the store wrote it
    const place = facts.get(`place ${token}`) ?? '';
    const [outdated = '', ...fields] = place.split('\0');
    if (place === '' || outdated === keyOf(root)) continue;
    const words = [`place ${token}`, place, [keyOf(root), ...fields].join('\0')];
    await connection.script(MOVE_LOCK, [key('locks'), key('lock-places')], words);
  }
}

/** Returns a hash. */
async function fieldsOf(connection: Connection, key: string): Promise<Map<string, string>> {
  const words = textsOf(await connection.command('HGETALL', key));
  const fields = new Map<string, string>();
  for (let index = 0; index < words.length; index += 2)
    fields.set(words[index] ?? '', words[index + 1] ?? '');
  return fields;
}

/** ARGV: outdated key, key, path, metadata (complete, because Lua would round its numbers). */
const MOVE_PLACEHOLDER = `${PATHS_LUA}
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return end
redis.call('HDEL', KEYS[1], ARGV[1])
leave(KEYS[2], KEYS[3], ARGV[1])
redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
enter(KEYS[2], KEYS[3], ARGV[2])`;

/** ARGV: outdated key, key, path, facts. */
const MOVE_LOCAL_FILE = `${LOCAL_FILES_LUA}
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then return end
local file = lift(ARGV[1])
file.path = ARGV[3]
place(ARGV[2], file)`;

/** ARGV: field of the place, outdated place, place. */
const MOVE_LOCK = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZADD', KEYS[2], 0, ARGV[3])`;
