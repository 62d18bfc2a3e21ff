import { setTimeout } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { Gate } from '../../support/gate.ts';
import { body, commit, OWNER, refusal } from './opened.ts';
import { blocksIn, openedShared, postgresTests, type SharedPlace, withStatements } from './opened-shared.ts';

// Commits to several namespaces at the same time, which share transactions.

const { newPlace } = postgresTests();

const HOMES = Array.from({ length: 20 }, (_, index) => `home-${index}`);
const REST = HOMES.slice(1);

/** Returns what takes the place of a statement; `undefined` if it runs. */
type Instead = (client: PoolClient, text: string) => Promise<unknown> | undefined;

interface Opened {
  readonly place: SharedPlace;
  readonly storage: Storage;
  readonly pool: Pool;
  /** Replaces statements from now on. */
  readonly watch: (instead: Instead) => void;
}

/** Opens a storage with a copy of each of `HOMES`. */
async function opened(): Promise<Opened> {
  let watching: Instead = () => undefined;
  const place = await newPlace();
  const { storage, pool } = await openedShared(place, {}, (own) =>
    withStatements(own, (client, text) => watching(client, text)),
  );
  for (const home of HOMES) {
    await storage.createNamespace(home, 2 ** 40);
    await storage.createFolder(home, '/warm', false);
  }
  return {
    place,
    storage,
    pool,
    watch(instead) {
      watching = instead;
    },
  };
}

/** Makes a folder in each home at the same time. Returns their names, or refusals. */
function makeFolders(storage: Storage, homes: readonly string[] = HOMES): Promise<readonly string[]> {
  return Promise.all(
    homes.map((home) =>
      // A second run would make `/f (1)`.
      storage.createFolder(home, '/f', true).then(
        ({ name }) => name,
        (failure: unknown) => String(failure),
      ),
    ),
  );
}

async function namesIn(storage: Storage, home: string): Promise<readonly string[]> {
  const { entries } = await storage.list(
    { ...OWNER, namespace: home },
    { path: '', recursive: true, includeDeleted: false },
    100,
  );
  return entries.map(({ pathDisplay }) => pathDisplay);
}

/**
 * Makes a folder in the first home, whose commit is held at the database, and lets `change` begin commits to others, which
 * wait for its end. They go on when `change` calls `letGo`. `instead` takes the place of a COMMIT of what was stored.
 */
async function whileOneIsHeld<T>(
  { storage, watch }: Opened,
  change: (letGo: () => void) => Promise<T>,
  instead: Instead = () => undefined,
): Promise<T> {
  const gate = new Gate();
  const storing = new WeakSet<PoolClient>();
  let commits = 0;
  watch((client, text) => {
    const isCommit = text === 'COMMIT' && storing.delete(client);
    if (text.includes('UPDATE davgate.namespace')) storing.add(client);
    if (isCommit) commits += 1;
    if (!isCommit && !text.startsWith('BEGIN; SET')) return undefined;
    // The first transaction goes on to its COMMIT.
    if (!isCommit && commits === 0) return undefined;
    return gate.pass().then(() => (isCommit ? instead(client, text) : undefined) ?? client.query(text));
  });
  const first = makeFolders(storage, HOMES.slice(0, 1));
  await eventually(() => expect(commits).toBe(1));
  const changed = await change(() => gate.open());
  expect(await first).toEqual(['f']);
  return changed;
}

/** Begins `commits`, and lets them go when they are on their way to their turns. */
function soon<T>(commits: () => Promise<T>): (letGo: () => void) => Promise<T> {
  return async (letGo) => {
    const done = commits();
    await setTimeout(500);
    letGo();
    return done;
  };
}

test('commits to 19 namespaces that come while another one is under way share transactions', async () => {
  const all = await opened();
  let commits = 0;
  const counted: Instead = () => {
    commits += 1;
    return undefined;
  };
  const made = await whileOneIsHeld(
    all,
    soon(() => makeFolders(all.storage, REST)),
    counted,
  );
  expect(made).toEqual(REST.map(() => 'f'));
  expect(commits).toBeLessThan(HOMES.length);
  for (const home of HOMES) expect(await namesIn(all.storage, home)).toEqual(['/f', '/warm']);
});

test('a namespace that another process has locked holds up no commit to another namespace', async () => {
  const { storage, pool } = await opened();
  const [locked = '', ...others] = HOMES;
  const client = await pool.connect();
  await client.query('BEGIN');
  await client.query('SELECT 1 FROM davgate.namespace WHERE name = $1 FOR UPDATE', [locked]);
  const late = makeFolders(storage, [locked]);
  expect(await makeFolders(storage, others)).toEqual(others.map(() => 'f'));
  expect(await Promise.race([late, setTimeout(0, 'waits')])).toBe('waits');
  await client.query('COMMIT');
  client.release();
  expect(await late).toEqual(['f']);
});

test('a commit that is refused when it is stored fails none that shares its transaction', async () => {
  const all = await opened();
  const [refused = '', ...others] = REST;
  const upload = commit('/f');
  const [outcome, made] = await whileOneIsHeld(all, async (letGo) => {
    const both = Promise.all([
      refusal(all.storage.upload(refused, upload, body(Buffer.alloc(200_000, 'block ')))),
      makeFolders(all.storage, others),
    ]);
    const names = () => blocksIn(all.place);
    await expectSoon(names).toHaveLength(1);
    // As if the removal of the block had begun.
    await all.pool.query(
      'INSERT INTO davgate.condemned_block (name, is_final) SELECT unnest($1::text[]), true',
      [await names()],
    );
    letGo();
    return both;
  });
  expect(outcome).toBe('write/too_many_write_operations');
  expect(made).toEqual(others.map(() => 'f'));
  expect(await namesIn(all.storage, refused)).toEqual(['/warm']);
});

test.each([
  ['answer to a COMMIT', 'COMMIT'],
  ['COMMIT itself', 'ROLLBACK'],
])('of changes whose shared %s is lost each is made once, and acknowledged', async (_, before) => {
  const all = await opened();
  let lost = 0;
  const loseTwo: Instead = (client) => {
    lost += 1;
    if (lost > 2) return undefined;
    return client.query(before).then(() => Promise.reject(new Error('Connection terminated unexpectedly')));
  };
  const made = await whileOneIsHeld(
    all,
    soon(() => makeFolders(all.storage, REST)),
    loseTwo,
  );
  expect(lost).toBeGreaterThanOrEqual(2);
  expect(made).toEqual(REST.map(() => 'f'));
  for (const home of HOMES) expect(await namesIn(all.storage, home)).toEqual(['/f', '/warm']);
});
