import { mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool, QueryResultRow } from 'pg';
import { expect, test } from 'vitest';
import type { Queries } from '../../../src/service/postgres/queries.ts';
import type { BlockPlace } from '../../../src/service/storage/blocks/block-place.ts';
import { collectBlocks, forgetOld, keptMsOf } from '../../../src/service/storage/postgres/collector.ts';
import { existingSharedFolder } from '../../../src/service/storage/postgres/shared-folder.ts';
import { type LogFields, silentLog } from '../../../src/util/log.ts';
import { eventually } from '../../support/eventually.ts';
import { Gate } from '../../support/gate.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HOME, put, refusal, textAt } from './opened.ts';
import {
  blocksIn,
  openedShared,
  postgresTests,
  type SharedPlace,
  tidyAll,
  withStatements,
} from './opened-shared.ts';

const { newPlace } = postgresTests();

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const KEPT_MS = keptMsOf();
const TEXT = 'wanted '.repeat(20_000);

const UNTIL_THE_END = new AbortController().signal;

/** Removes the blocks that have belonged to nothing for a day. Returns their number. */
async function collect(on: Queries, { folder }: SharedPlace): Promise<number> {
  const [tag = ''] = await readdir(folder);
  const blocks = existingSharedFolder(folder, tag, true);
  const { removed, failure } = await collectBlocks({ on, blocks, keptMs: KEPT_MS }, UNTIL_THE_END);
  expect(failure).toBeUndefined();
  return removed;
}

/** Returns connections that call `before` with each statement, and `after` with the number of its rows. */
function watched(
  queries: Queries,
  { before, after }: { before?: (text: string) => Promise<void>; after?: (rows: number) => void },
): Queries {
  return {
    async query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]) {
      await before?.(text);
      const result = await queries.query<Row>(text, values);
      after?.(result.rowCount ?? 0);
      return result;
    },
  };
}

async function passTime(pool: Pool, time: string): Promise<void> {
  await pool.query(`UPDATE davgate.condemned_block SET since = since - interval '${time}'`);
}

/** Whether a statement waits for the end of a transaction. */
async function isWaiting(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query(
    `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return rows.length > 0;
}

/**
 * Opens a storage with a copy of its home, which then calls a step once before the next statement that begins with its words.
 * The steps have other connections.
 */
async function openedWithSteps(place: SharedPlace, steps: Record<string, (pool: Pool) => Promise<void>>) {
  const left = new Map<string, (pool: Pool) => Promise<void>>();
  const { storage, pool } = await openedShared(place, {}, (own) =>
    withStatements(own, (client, text) => {
      const words = [...left.keys()].find((one) => text.startsWith(one)) ?? '';
      const step = left.get(words);
      left.delete(words);
      return step?.(own).then(() => client.query(text));
    }),
  );
  await put(storage, '/other', 'small');
  for (const [words, step] of Object.entries(steps)) left.set(words, step);
  return { storage, pool };
}

/** A commit begins when the blocks of its upload are stored. */
const BEGIN = 'BEGIN; SET LOCAL ';

test('an upload whose block was removed before its commit is refused as one to repeat, and the repetition stores the block again', async () => {
  const place = await newPlace();
  let removed = 0;
  const { storage, pool } = await openedWithSteps(place, {
    [BEGIN]: async (others) => {
      await collect(others, place);
      await passTime(others, '25 hours');
      removed = await collect(others, place);
    },
  });
  expect(await refusal(put(storage, '/f', TEXT))).toBe('write/too_many_write_operations');
  expect(removed).toBe(1);
  expect(await refusal(textAt(storage, '/f'))).toBe('lookup/not_found');
  await put(storage, '/f', TEXT);
  await passTime(pool, '25 hours');
  expect(await collect(pool, place)).toBe(0);
  expect(await textAt(storage, '/f')).toBe(TEXT);
});

test('a condemned block to which a commit refers before its removal begins is kept', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedWithSteps(place, {
    [BEGIN]: async (others) => {
      await collect(others, place);
      await passTime(others, '25 hours');
    },
  });
  await put(storage, '/f', TEXT);
  expect(await collect(pool, place)).toBe(0);
  expect(await textAt(storage, '/f')).toBe(TEXT);
});

test('a collector that meets a condemned block of a commit that has not ended waits for the commit, and keeps the block', async () => {
  const place = await newPlace();
  let collecting: Promise<number> | undefined;
  const { storage } = await openedWithSteps(place, {
    [BEGIN]: async (others) => {
      await collect(others, place);
      await passTime(others, '25 hours');
    },
    COMMIT: async (others) => {
      collecting = collect(others, place);
      await eventually(async () => expect(await isWaiting(others)).toBe(true));
    },
  });
  await put(storage, '/f', TEXT);
  expect(await collecting).toBe(0);
  expect(await textAt(storage, '/f')).toBe(TEXT);
});

test('a block to which a commit refers while a collector looks at it is not condemned by that collector', async () => {
  const place = await newPlace();
  const gate = new Gate();
  let collecting: Promise<number> | undefined;
  const { storage, pool } = await openedWithSteps(place, {
    [BEGIN]: async (others) => {
      // It has found no reference, and writes so after the commit.
      const before = async (text: string) => (text.startsWith('WITH new') ? await gate.pass() : undefined);
      collecting = collect(watched(others, { before }), place);
      await gate.reached;
    },
  });
  await put(storage, '/f', TEXT);
  gate.open();
  expect(await collecting).toBe(0);
  const { rows } = await pool.query(`SELECT 1 FROM davgate.condemned_block WHERE since < 'infinity'`);
  expect(rows).toEqual([]);
});

test('a block that loses its last reference long after its commit is kept as long as any other one', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  await put(storage, '/f', TEXT);
  await passTime(pool, '25 hours');
  await storage.removeForever(HOME, '/f');
  const blocksAfter = async (time: string) => {
    await passTime(pool, time);
    await tidyAll(storage);
    return (await blocksIn(place)).length;
  };
  expect(await blocksAfter('0 hours')).toBe(1);
  expect(await blocksAfter('23 hours')).toBe(1);
  expect(await blocksAfter('2 hours')).toBe(0);
});

test('a block that cannot be removed keeps no other one, however many there are, and its failure comes with the number of the others', async () => {
  const place = await newPlace();
  const { pool } = await openedShared(place);
  const names = Array.from(
    { length: 2500 },
    (_, index) => `${String(index).padStart(64, '0')}-0123456789abcdef`,
  );
  const removed: string[] = [];
  const blocks: BlockPlace = {
    ...existingSharedFolder(place.folder, 'none', false),
    async *names() {
      yield* names;
    },
    async remove(name) {
      if (name === names[0]) throw new Error('it is locked');
      removed.push(name);
    },
  };
  const collecting = () => collectBlocks({ on: pool, blocks, keptMs: KEPT_MS }, UNTIL_THE_END);
  expect(await collecting()).toEqual({ removed: 0, failure: undefined });
  await passTime(pool, '25 hours');
  expect(await collecting()).toEqual({ removed: 2499, failure: new Error('it is locked') });
  expect(removed).toEqual(names.slice(1));
});

test('the log has the number of removed blocks also when another block cannot be removed', async () => {
  const place = await newPlace();
  const removals: (LogFields | undefined)[] = [];
  const log = { ...silentLog, info: (_event: string, fields?: LogFields) => removals.push(fields) };
  const { storage, pool } = await openedShared(place, { log });
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  // A folder is not removed like a file.
  const [tag = ''] = await readdir(place.folder);
  await mkdir(join(place.folder, tag, 'blocks', `${'0'.repeat(64)}-0123456789abcdef`));
  await tidyAll(storage);
  await passTime(pool, '25 hours');
  expect(await refusal(tidyAll(storage))).toMatch(/directory|EISDIR|EPERM/);
  expect(removals).toEqual([{ removedBlocks: 1 }]);
});

test('commits are forgotten a week after the next one, many namespaces and commits by small statements', async () => {
  const { storage, pool } = await openedShared(await newPlace());
  const names = ['busy', 'busy too', 'unused'];
  for (const name of names) await storage.createNamespace(name, 1);
  // One in four minutes for two weeks, and of the last namespace some that are all old.
  await pool.query(
    `INSERT INTO davgate.commit (ns, version, mark, tables, made)
     SELECT id, n, '', '{}', now() - interval '14 days' + n * interval '4 minutes' + interval '2 minutes'
     FROM davgate.namespace, generate_series(1, CASE name WHEN 'unused' THEN 10 ELSE 5000 END) AS n
     WHERE name = ANY($1)`,
    [names],
  );
  const forgotten: number[] = [];
  const on = watched(pool, { after: (rows) => forgotten.push(rows) });
  await forgetOld(on, KEPT_MS, UNTIL_THE_END);
  const { rows } = await pool.query(
    `SELECT name, min(commit.version) AS first, max(commit.version) AS last, count(*) AS commits
     FROM davgate.commit JOIN davgate.namespace ON id = ns GROUP BY name ORDER BY name`,
  );
  const busy = { first: 2519, last: 5000, commits: 2482 };
  expect(rows).toEqual([
    { name: 'busy', ...busy },
    { name: 'busy too', ...busy },
    { name: 'unused', first: 10, last: 10, commits: 1 },
  ]);
  expect(Math.max(...forgotten)).toBeLessThanOrEqual(300);
});

test('blocks are removed although old commits cannot be forgotten, and that failure is thrown at the end', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await tidyAll(storage);
  await passTime(pool, '25 hours');
  await pool.query(
    `UPDATE davgate.commit SET made = made - interval '8 days';
     CREATE FUNCTION davgate.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'it stays'; END $$;
     CREATE TRIGGER refusal BEFORE DELETE ON davgate.commit FOR EACH ROW EXECUTE FUNCTION davgate.refuse()`,
  );
  expect(await refusal(tidyAll(storage))).toBe('it stays');
  expect(await blocksIn(place)).toEqual([]);
});

test('the name of a removed block is known until no upload can refer to it, and that of a block yet to be removed stays known', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await tidyAll(storage);
  const known = async () => {
    await forgetOld(pool, KEPT_MS, UNTIL_THE_END);
    return (await pool.query('SELECT 1 FROM davgate.condemned_block')).rows.length;
  };
  await passTime(pool, '9 days');
  expect(await known()).toBe(1);
  expect(await collect(pool, place)).toBe(1);
  expect(await known()).toBe(0);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await tidyAll(storage);
  await passTime(pool, '7 days');
  expect(await collect(pool, place)).toBe(1);
  expect(await known()).toBe(1);
});

test('a service that is not told how long to keep blocks keeps them as long as another one was told to', async () => {
  const place = await newPlace();
  await openedShared(place, { keepDeletedBlocksMs: 30 * DAY_MS });
  const { storage, pool } = await openedShared(place);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await tidyAll(storage);
  await passTime(pool, '29 days');
  await tidyAll(storage);
  expect(await blocksIn(place)).toHaveLength(1);
  await passTime(pool, '2 days');
  await tidyAll(storage);
  expect(await blocksIn(place)).toEqual([]);
});

test('a service that is told to keep blocks for a shorter time than another one was keeps them for the longer time, and says so', async () => {
  const place = await newPlace();
  const { storage: first } = await openedShared(place, { keepDeletedBlocksMs: 30 * DAY_MS });
  await first.close();
  const warnings: (LogFields | undefined)[] = [];
  const log = { ...silentLog, warn: (_event: string, fields?: LogFields) => warnings.push(fields) };
  const { storage, pool } = await openedShared(place, { keepDeletedBlocksMs: 2 * DAY_MS, log });
  expect(warnings).toEqual([{ keptDays: 30, askedDays: 2 }]);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await tidyAll(storage);
  await passTime(pool, '29 days');
  await tidyAll(storage);
  expect(await blocksIn(place)).toHaveLength(1);
});

test('what a killed process has received in a shared folder is removed after a day, and nothing of a living one that has not ended a round since', async () => {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage } = await openedShared(place, { clock });
  const { storage: other } = await openedShared(place, { clock });
  await clock.untilSleepingFor(HOUR_MS, 2);
  const [tag = ''] = await readdir(place.folder);
  const living = await processesIn(join(place.folder, tag));
  const killed = join(place.folder, tag, 'process-killed');
  await mkdir(join(killed, 'incoming'), { recursive: true });
  await writeFile(join(killed, 'incoming', '0'), 'half a block');
  await tidyAll(storage);
  expect(await processesIn(join(place.folder, tag))).toHaveLength(3);
  clock.stepWall(DAY_MS);
  await clock.advance(HOUR_MS);
  await eventually(async () => {
    for (const name of living)
      expect((await stat(join(place.folder, tag, name))).mtimeMs).toBeGreaterThan(clock.now() - HOUR_MS);
  });
  await tidyAll(storage);
  expect(await processesIn(join(place.folder, tag))).toEqual(living);
  await put(other, '/f', Buffer.alloc(200_000, 'davgate '));
  expect(await textAt(storage, '/f')).toContain('davgate');
});

test('a process that others have taken for dead receives blocks again within an hour', async () => {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage } = await openedShared(place, { clock });
  const { storage: suspended } = await openedShared(place, { clock });
  await clock.untilSleepingFor(HOUR_MS, 2);
  clock.stepWall(25 * HOUR_MS);
  await tidyAll(storage);
  await clock.advance(HOUR_MS);
  await eventually(() => put(suspended, '/f', Buffer.alloc(200_000, 'davgate ')));
  expect(await textAt(storage, '/f')).toContain('davgate');
});

/** Returns the names of the folders in which processes receive blocks. */
async function processesIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith('process-')).sort();
}
