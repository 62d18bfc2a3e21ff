import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as otherCalls } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { expect, test } from 'vitest';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { body, bytesOf, commit, HOME, OWNER, put, refusal, temporaryFolder, textAt } from './opened.ts';
import { blocksIn, openedShared, postgresTests, tidyAll, withStatements } from './opened-shared.ts';

const { newPlace, two, server } = postgresTests();

const WHOLE = { path: '', recursive: true, includeDeleted: false };

/** Fails like a lock that is not free in time. */
const NO_LOCK = `DO $$ BEGIN RAISE EXCEPTION 'no lock' USING ERRCODE = '55P03'; END $$`;

/** A lost connection, as the client reports it. */
function connectionLost(): Error {
  return new Error('Connection terminated unexpectedly');
}

/** Returns the number of revisions that the database has. */
async function revisions(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>('SELECT count(*)::int AS count FROM davgate.revision');
  return rows[0]?.count ?? 0;
}

test('what one storage acknowledges, the other shows at once: 100 writes and removals in turn', async () => {
  const { one, other } = await two();
  for (let count = 0; count < 50; count++) {
    const [here, there] = count % 2 === 0 ? [one, other] : [other, one];
    const file = await put(here, `/f${count % 7}`, `text ${count}`);
    expect(await there.stat(HOME, file.pathLower, false)).toEqual(file);
    expect(await textAt(there, file.pathLower)).toBe(`text ${count}`);
    await there.remove(HOME, file.pathLower);
    expect(await refusal(here.stat(HOME, file.pathLower, false))).toBe('lookup/not_found');
  }
});

test('200 writers of one revision over three storages: one wins, and the others are in conflict', async () => {
  const place = await newPlace();
  const storages = await Promise.all([1, 2, 3].map(async () => (await openedShared(place)).storage));
  const [first] = storages;
  if (!first) throw new Error('none');
  const { rev } = await put(first, '/f', 'before');
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, index) =>
      refusal(
        (storages[index % 3] ?? first).upload(
          HOME,
          commit('/f', { mode: { tag: 'update', rev }, strictConflict: true }),
          body(`writer ${index}`),
        ),
      ),
    ),
  );
  expect(outcomes.toSorted()).toEqual([...Array.from({ length: 199 }, () => 'conflict/file'), 'done']);
  const text = await textAt(first, '/f');
  for (const storage of storages) expect(await textAt(storage, '/f')).toBe(text);
});

test('a session that is begun at one storage is continued and finished at the other, its blocks joined', async () => {
  const { one, other } = await two();
  const bytes = Buffer.alloc(9_000_001, 'davgate ');
  const session = await one.startSession(HOME, 'sequential', body(bytes.subarray(0, 3_000_000)), false);
  await other.appendSession(
    HOME,
    { session, offset: 3_000_000 },
    body(bytes.subarray(3_000_000, 8_999_999)),
    false,
  );
  await one.appendSession(HOME, { session, offset: 8_999_999 }, body(bytes.subarray(8_999_999)), true);
  const [file] = await other.finishSessions(HOME, [{ session, offset: 9_000_001, commit: commit('/big') }]);
  if (!file || !('rev' in file)) throw new Error(String(file));
  expect((await bytesOf(one.read(HOME, file, undefined))).equals(bytes)).toBe(true);
  const part = { start: 4_194_000, end: 4_195_000 };
  expect((await bytesOf(other.read(HOME, file, part))).equals(bytes.subarray(4_194_000, 4_195_000))).toBe(
    true,
  );
});

test('a large move at one storage is seen whole or not at all at the other, also by those who follow it', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place, { stagedRowsMax: 10 });
  const { storage: other } = await openedShared(place, { stagedRowsMax: 10 });
  await one.createFolders(
    HOME,
    Array.from({ length: 120 }, (_, index) => `/from/f${index}`),
    false,
  );
  const cursor = await other.latestCursor(OWNER, WHOLE);
  const moving = one.relocate(HOME, '/from', '/to', { copy: false, autorename: false });
  let isMoved = false;
  moving.then(
    () => {
      isMoved = true;
    },
    () => undefined,
  );
  for (let looks = 0; !isMoved || looks < 3; looks++) {
    const { entries } = await other.list(OWNER, WHOLE, 1000);
    const paths = entries.map(({ pathLower }) => pathLower.split('/')[1]);
    expect(new Set(paths).size).toBe(1);
    expect(entries).toHaveLength(121);
  }
  await moving;
  const { entries } = await other.listContinue(OWNER, cursor);
  expect(entries.filter(({ kind }) => kind === 'folder')).toHaveLength(121);
  expect(entries.find(({ kind }) => kind === 'deleted')?.pathLower).toBe('/from');
});

test('a file that the other storage removes forever while it is read is read to its end', async () => {
  const { one, other } = await two();
  const bytes = Buffer.alloc(9 * 1024 * 1024, 'davgate ');
  const file = await put(one, '/f', bytes, 'a last block that is small');
  const reading = one.read(HOME, file, undefined)[Symbol.asyncIterator]();
  const chunks = [(await reading.next()).value as Uint8Array];
  await other.removeForever(HOME, '/f');
  await put(one, '/g', Buffer.alloc(9 * 1024 * 1024, 'another '));
  for (let next = await reading.next(); !next.done; next = await reading.next()) chunks.push(next.value);
  expect(Buffer.concat(chunks).toString()).toBe(`${bytes}a last block that is small`);
});

test('a small block that is removed while it is read is read, though the same commit stores another one', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  let begun = 0;
  let isBusy = false;
  // Time does not end its transactions.
  const clock = new ManualClock(Date.now());
  const { storage: other } = await openedShared(place, { clock }, (pool) =>
    withStatements(pool, (client, text) => {
      if (!text.startsWith('BEGIN;')) return undefined;
      begun += 1;
      // As if another process had the lock.
      return isBusy ? client.query(NO_LOCK) : undefined;
    }),
  );
  const large = Buffer.alloc(2 * BLOCK_BYTES, 'davgate ');
  // Its block stays, so that the small one is the last.
  await put(one, '/large', large);
  const file = await put(one, '/f', large, 'small');
  const reading = one.read(HOME, file, undefined)[Symbol.asyncIterator]();
  await reading.next();
  begun = 0;
  isBusy = true;
  const removing = other.removeForever(HOME, '/f');
  await eventually(() => expect(begun).toBeGreaterThan(0));
  const putting = put(other, '/g', 'other');
  const before = begun;
  await eventually(() => expect(begun).toBeGreaterThan(before + 20));
  isBusy = false;
  await Promise.all([removing, putting]);
  await reading.next();
  expect(Buffer.from((await reading.next()).value ?? '').toString()).toBe('small');
});

test.each([
  ['answer to a COMMIT', async (client: PoolClient) => void (await client.query('COMMIT'))],
  ['COMMIT itself', async (client: PoolClient) => void (await client.query('ROLLBACK'))],
])('a change whose %s is lost is made once, and acknowledged', async (_, before) => {
  const place = await newPlace();
  let left = 0;
  const { storage } = await openedShared(place, {}, (pool) =>
    withStatements(pool, (client, text) => {
      if (text !== 'COMMIT' || left === 0) return undefined;
      left -= 1;
      return before(client).then(() => Promise.reject(connectionLost()));
    }),
  );
  left = 2;
  // A second run would make `/f (1)`.
  const folder = await storage.createFolder(HOME, '/f', true);
  expect(left).toBe(0);
  const { storage: other } = await openedShared(place);
  expect((await other.list(OWNER, WHOLE, 10)).entries).toEqual([folder]);
});

test('no acknowledged write is lost, and none made twice, when the connections are cut at any moment', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  const { storage: other } = await openedShared(place);
  let isOver = false;
  const cutting = (async () => {
    while (!isOver)
      await server().administer(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = '${new URL(place.url).pathname.slice(1)}' AND random() < 0.2`,
      );
  })();
  const acknowledged: string[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      for (let count = 0; count < 15; count++) {
        const storage = (writer + count) % 2 === 0 ? one : other;
        // A second run would make one with another name.
        const made = await storage.createFolder(HOME, `/w${writer} f${count}`, true).catch(() => undefined);
        if (made) acknowledged.push(made.pathDisplay);
      }
    }),
  );
  isOver = true;
  await cutting;
  const { entries } = await other.list(OWNER, WHOLE, 1000);
  const stored = new Set(entries.map(({ pathDisplay }) => pathDisplay));
  expect(acknowledged.filter((path) => !stored.has(path))).toEqual([]);
  expect([...stored].filter((path) => path.includes('('))).toEqual([]);
  expect(acknowledged.length).toBeGreaterThan(100);
});

test('a batch of 1,000 entries takes at most 30 statements, while time does not end its transactions', async () => {
  const place = await newPlace();
  let statements = 0;
  const { storage } = await openedShared(place, { clock: new ManualClock() }, (pool) =>
    withStatements(pool, () => {
      statements += 1;
      return undefined;
    }),
  );
  const paths = Array.from({ length: 1000 }, (_, index) => `/f${index}`);
  await storage.createFolders(HOME, ['/warm'], false);
  statements = 0;
  const made = await storage.createFolders(HOME, paths, false);
  expect(made.filter((outcome) => 'kind' in outcome)).toHaveLength(1000);
  expect(statements).toBeLessThanOrEqual(30);
  statements = 0;
  const removed = await storage.removeAll(
    HOME,
    paths.map((address) => ({ address })),
  );
  expect(removed.filter((outcome) => 'kind' in outcome)).toHaveLength(1000);
  expect(statements).toBeLessThanOrEqual(30);
});

test('a content whose uses are counted too low is kept for the revision that is left, and new ones get other numbers', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  const text = 'text '.repeat(40_000);
  for (const path of ['/gone', '/left']) await put(storage, path, text);
  await storage.close();
  const { storage: other, pool: still } = await openedShared(place);
  expect(pool.ended).toBe(true);
  await still.query('UPDATE davgate.holding SET revisions = 1, files = 1');
  await other.removeForever(HOME, '/gone');
  await put(other, '/new', 'new '.repeat(40_000));
  expect(await textAt(other, '/left')).toBe(text);
});

test('a call that waits for a change is told of a commit of another storage, without asking', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  // Time stands still, so that it never asks.
  const { storage: other } = await openedShared(place, { clock: new ManualClock() });
  await put(one, '/f', 'text');
  const cursor = await other.latestCursor(OWNER, WHOLE);
  const waiting = other.awaitChange(cursor, 480_000, new AbortController().signal);
  await put(one, '/g', 'text');
  await eventually(async () => {
    // A notification is lost until the storage listens.
    await put(one, `/${Math.random()}`, 'text');
    expect(await Promise.race([waiting, otherCalls('none')])).toBe(true);
  });
});

test('a storage that is told of no commit sees the changes of others within seconds, by asking', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place);
  const { storage: deaf } = await openedShared(place, {}, (pool) =>
    withStatements(pool, (client, text) =>
      text.startsWith('LISTEN') ? client.query('SELECT 1') : undefined,
    ),
  );
  await put(one, '/f', 'text');
  const cursor = await deaf.latestCursor(OWNER, WHOLE);
  const waiting = deaf.awaitChange(cursor, 480_000, new AbortController().signal);
  await put(one, '/g', 'text');
  expect(await waiting).toBe(true);
  expect((await deaf.listContinue(OWNER, cursor)).entries.map(({ pathLower }) => pathLower)).toEqual(['/g']);
});

test('blocks that nothing refers to are removed after a day, and no other block', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  const { storage: other } = await openedShared(place);
  const bytes = Buffer.alloc(200_000, 'kept ');
  await put(storage, '/kept', bytes);
  await put(storage, '/gone', Buffer.alloc(200_000, 'gone '));
  const session = await storage.startSession(HOME, 'sequential', body(Buffer.alloc(200_000, 'sent ')), false);
  await storage.removeForever(HOME, '/gone');
  await tidyAll(storage);
  expect(await blocksIn(place)).toHaveLength(3);
  await pool.query(`UPDATE davgate.condemned_block SET since = since - interval '25 hours'`);
  // Another storage has the task.
  await tidyAll(other);
  expect(await blocksIn(place)).toHaveLength(3);
  await tidyAll(storage);
  expect(await blocksIn(place)).toHaveLength(2);
  expect(await textAt(other, '/kept')).toBe(bytes.toString());
  await other.finishSession(HOME, { session, offset: 200_000 }, commit('/sent'), body());
  expect(await textAt(storage, '/sent')).toBe(Buffer.alloc(200_000, 'sent ').toString());
});

test('the history of a namespace ends after its time, though no process uses the namespace any more', async () => {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage } = await openedShared(place, { clock });
  await put(storage, '/f', 'text');
  await storage.remove(HOME, '/f');
  await storage.close();
  const DAY_MS = 24 * 60 * 60 * 1000;
  const later = new ManualClock(clock.now() + 30 * DAY_MS);
  const { storage: other, pool: still } = await openedShared(place, { clock: later });
  await other.tidy();
  expect(await revisions(still)).toBe(1);
  await other.close();
  const last = await openedShared(place, { clock: new ManualClock(clock.now() + 211 * DAY_MS) });
  await last.storage.tidy();
  expect(await revisions(last.pool)).toBe(0);
});

test('copies that take too much space are removed, the one used last is kept, and each is loaded again', async () => {
  const place = await newPlace();
  const scratchDirectory = await temporaryFolder();
  const { storage } = await openedShared(place, { scratchDirectory, unusedBytesMax: 1 });
  const homes = [HOME, 'second', 'third'];
  const copies = async () =>
    (await readdir(join(scratchDirectory, 'copies'))).filter((name) => name.endsWith('.sqlite'));
  for (const home of homes) {
    await storage.createNamespace(home, 2 ** 40);
    await storage.upload(home, commit('/f'), body(home));
  }
  await expectSoon(copies).toHaveLength(1);
  for (const home of homes) expect(await storage.stat(home, '/f', false)).toMatchObject({ name: 'f' });
  await expectSoon(copies).toHaveLength(1);
});

test('a large move that another storage takes for abandoned begins again, and is made once', async () => {
  const place = await newPlace();
  const { storage: one } = await openedShared(place, { stagedRowsMax: 5 });
  const late = new ManualClock(Date.now() + 120_000);
  const { storage: other } = await openedShared(place, { clock: late });
  await one.createFolders(
    HOME,
    Array.from({ length: 200 }, (_, index) => `/from/f${index}`),
    false,
  );
  const moving = one.relocate(HOME, '/from', '/to', { copy: false, autorename: false });
  for (let count = 0; count < 5; count++) {
    await other.createFolder(HOME, '/other', false);
    await other.removeForever(HOME, '/other');
  }
  await moving;
  for (const storage of [one, other]) {
    const { entries } = await storage.list(OWNER, WHOLE, 1000);
    expect(entries).toHaveLength(201);
    expect(new Set(entries.map((entry) => ('id' in entry ? entry.id : ''))).size).toBe(201);
    expect(entries.every(({ pathLower }) => /^\/to(\/|$)/.test(pathLower))).toBe(true);
  }
});

test('blocks of another service in the same folder stay, and each service finds its own', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  const { storage: stranger } = await openedShared({ ...(await newPlace()), folder: place.folder });
  const bytes = Buffer.alloc(200_000, 'theirs ');
  await put(stranger, '/theirs', bytes);
  await tidyAll(storage);
  await pool.query(`UPDATE davgate.condemned_block SET since = since - interval '25 hours'`);
  await tidyAll(storage);
  expect(await textAt(stranger, '/theirs')).toBe(bytes.toString());
});

test('a folder without the blocks that the service has is refused', async () => {
  const place = await newPlace();
  const { storage } = await openedShared(place);
  await put(storage, '/f', Buffer.alloc(200_000, 'text'));
  const { folder } = await newPlace();
  expect(await refusal(openedShared({ ...place, folder }))).toMatch(
    'does not have the blocks of this service',
  );
});

test('a data directory that another process uses is refused', async () => {
  const place = await newPlace();
  const scratchDirectory = await temporaryFolder();
  await openedShared(place, { scratchDirectory });
  expect(await refusal(openedShared(place, { scratchDirectory }))).toMatch('is in use by another process');
});
