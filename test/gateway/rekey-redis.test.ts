import { afterAll, beforeAll, expect, test } from 'vitest';
import { Connection } from '../../src/state/redis/connection.ts';
import { driveStore } from '../../src/state/redis/drive-keys.ts';
import { PUT } from '../../src/state/redis/local-files-scripts.ts';
import { CREATE } from '../../src/state/redis/locks-scripts.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { ROOT } from '../../src/util/path.ts';
import { lockOn } from '../support/locks.ts';
import { path } from '../support/paths.ts';
import { seenInRedis, startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

/** `J̌` in an outdated key: a letter and a combining mark. Its small letter has always had a code point of its own. */
const OUTDATED = 'j\u030c';
const SMALL = '\u01f0';

/** Paths of files that an older version stored, and their outdated keys. */
const FILES = [
  { at: `/Docs/${SMALL}`, key: `/docs/${SMALL}`, folder: '/docs' },
  { at: '/Docs/J\u030c', key: `/docs/${OUTDATED}`, folder: '/docs' },
  { at: '/J\u030c/alone', key: `/${OUTDATED}/alone`, folder: `/${OUTDATED}` },
];

/** Old path of each file, by its new path. */
const KEPT = {
  [`/Docs/${SMALL}`]: `/Docs/${SMALL}`,
  '/Docs/J\u030c (1)': '/Docs/J\u030c',
  '/J\u030c/alone': '/J\u030c/alone',
};

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/J\u030c');

/** Stores placeholders, local files and a lock under outdated keys, as an older version did. */
async function leaveOldState(): Promise<void> {
  const connection = new Connection({ url: redis.url, clock: systemClock, log: silentLog });
  await connection.connect();
  const { key } = driveStore(connection, 'd');
  for (const { at, key: outdated, folder } of FILES) {
    const facts = { path: at, id: at, rev: 'r' };
    const placeholder = JSON.stringify({ ...facts, modifiedMs: NOW_MS, untilMs: NOW_MS });
    await connection.command('HSET', key('holds'), outdated, placeholder);
    await connection.command('ZADD', key('hold-places'), '0', outdated);
    await connection.command('ZADD', key('hold-folders'), '0', `${folder}\0${outdated}`);
    const names = ['asides', 'aside-contents', 'aside-places', 'aside-folders', 'aside-ages', 'aside-totals'];
    const localFile = JSON.stringify({ ...facts, modifiedMs: String(NOW_MS), sizeBytes: String(at.length) });
    await connection.script(PUT, names.map(key), ['100000', outdated, localFile, at]);
  }
  const { timeoutSeconds, expiresMs, ...lasting } = lock;
  await connection.script(
    CREATE,
    [
      'locks',
      'lock-places',
      'lock-ends',
      'claims',
      'claim-places',
      'claim-ends',
      'lock-principals',
      'withdrawn-locks',
    ].map(key),
    [
      ...[lock.token, lock.scope, lock.depth, String(expiresMs - NOW_MS)],
      ...[JSON.stringify(lasting), JSON.stringify({ timeoutSeconds, expiresMs })],
      ...[`/${OUTDATED}`, lock.principal, '10', '10'],
    ],
  );
  await connection.close();
}

test('placeholders, local files and locks under outdated Redis keys are all found after two gateways start at once', async () => {
  await leaveOldState();
  const open = () => openRedisState({ url: redis.url, clock: systemClock, log: silentLog });
  const [state, other] = await Promise.all([open(), open()]);
  try {
    const { placeholders, localFiles } = other.drive('d');
    const found = await placeholders.within(ROOT);
    expect(Object.fromEntries(found.map(({ path: now, id }) => [now, id]))).toEqual(KEPT);
    for (const [now, before] of Object.entries(KEPT)) {
      expect(await placeholders.get(path(now))).toMatchObject({ id: before, untilMs: NOW_MS });
      expect(await localFiles.read(path(now))).toEqual(Buffer.from(before));
    }
    expect(await placeholders.in(path('/Docs'))).toHaveLength(2);
    expect(await localFiles.in(path(`/${SMALL}`))).toHaveLength(1);
    const { locks } = state.drive('d');
    expect(await locks.create(NOW_MS, lockOn(`/${SMALL}/new`))).toEqual({
      conflict: seenInRedis(lock),
    });
    await locks.release(lock.token);
    expect(await locks.all(NOW_MS)).toEqual([]);
    expect(await locks.create(NOW_MS, lockOn(`/${SMALL}/new`))).toHaveProperty('token');
  } finally {
    await state.close();
    await other.close();
  }
});
