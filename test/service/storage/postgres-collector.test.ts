import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import { expect, test } from 'vitest';
import { collectBlocks, forgetOld, keptMsOf } from '../../../src/service/storage/postgres/collector.ts';
import { existingSharedFolder } from '../../../src/service/storage/postgres/shared-folder.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HOME, put, refusal, textAt } from './opened.ts';
import { openedShared, postgresTests, type SharedPlace, withStatements } from './opened-shared.ts';

const { newPlace } = postgresTests();

const KEPT_MS = keptMsOf();
const TEXT = 'wanted '.repeat(20_000);

/** Removes the blocks that have belonged to nothing for a day. Returns their number. */
async function collect(pool: Pool, { folder }: SharedPlace): Promise<number> {
  const [tag = ''] = await readdir(folder);
  const blocks = existingSharedFolder(folder, tag, true);
  return await collectBlocks({ on: pool, blocks, keptMs: KEPT_MS }, new AbortController().signal);
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

test('the name of a removed block is known until no upload can refer to it, and that of a block yet to be removed stays known', async () => {
  const place = await newPlace();
  const { storage, pool } = await openedShared(place);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await storage.tidy();
  const known = async () => {
    await forgetOld(pool, KEPT_MS);
    return (await pool.query('SELECT 1 FROM davgate.condemned_block')).rows.length;
  };
  await passTime(pool, '9 days');
  expect(await known()).toBe(1);
  expect(await collect(pool, place)).toBe(1);
  expect(await known()).toBe(0);
  await put(storage, '/f', TEXT);
  await storage.removeForever(HOME, '/f');
  await storage.tidy();
  await passTime(pool, '7 days');
  expect(await collect(pool, place)).toBe(1);
  expect(await known()).toBe(1);
});

test('what a killed process has received in a shared folder is removed after a day, and nothing of a living one', async () => {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage } = await openedShared(place, { clock });
  const { storage: other } = await openedShared(place, { clock });
  const [tag = ''] = await readdir(place.folder);
  const killed = join(place.folder, tag, 'process-killed');
  await mkdir(join(killed, 'incoming'), { recursive: true });
  await writeFile(join(killed, 'incoming', '0'), 'half a block');
  const processes = async () =>
    (await readdir(join(place.folder, tag))).filter((name) => name.startsWith('process-')).length;
  await storage.tidy();
  expect(await processes()).toBe(3);
  clock.stepWall(25 * 60 * 60 * 1000);
  await other.tidy();
  await storage.tidy();
  expect(await processes()).toBe(2);
  expect(existsSync(killed)).toBe(false);
  await put(other, '/f', Buffer.alloc(200_000, 'davgate '));
  expect(await textAt(storage, '/f')).toContain('davgate');
});

test('a process that others have taken for dead receives blocks again after its next round', async () => {
  const place = await newPlace();
  const clock = new ManualClock(Date.now());
  const { storage } = await openedShared(place, { clock });
  const { storage: suspended } = await openedShared(place, { clock });
  clock.stepWall(25 * 60 * 60 * 1000);
  await storage.tidy();
  await suspended.tidy();
  await put(suspended, '/f', Buffer.alloc(200_000, 'davgate '));
  expect(await textAt(storage, '/f')).toContain('davgate');
});
