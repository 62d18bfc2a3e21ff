import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Storage, StorageError } from '../../../src/service/storage/storage.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { body, commit, HOME, OWNER, opened, put } from './opened.ts';

/** Number of entries of a batch, more than one step takes. */
const ENTRIES = 300;

/** Highest number of changes without a turn for other calls. */
const STEP_MAX = 150;

const MOVE = { copy: false, autorename: false };
const COPY = { copy: true, autorename: false };

const indexes = Array.from({ length: ENTRIES }, (_, index) => index);

/** Returns the number of entries of a folder and below it. */
async function count(storage: Storage, path: string): Promise<number> {
  try {
    const { entries } = await storage.list(OWNER, { path, recursive: true, includeDeleted: false }, 2000);
    return entries.length;
  } catch {
    return 0;
  }
}

/**
 * Calls `look` at each turn of the event loop while a call runs. Returns the largest difference between two
 * turns.
 */
async function largestStep(call: Promise<unknown>, look: () => Promise<number>): Promise<number> {
  let before = await look();
  let largest = 0;
  let isRunning = true;
  const ended = call.finally(() => {
    isRunning = false;
  });
  const compare = async () => {
    const now = await look();
    largest = Math.max(largest, Math.abs(now - before));
    before = now;
  };
  while (isRunning) {
    await turn();
    await compare();
  }
  await ended;
  await compare();
  return largest;
}

test('finishSessions of 300 entries lets other calls run between its entries', async () => {
  const storage = await opened();
  const sessions = await Promise.all(
    indexes.map(() => storage.startSession(HOME, 'sequential', body('x'), true)),
  );
  const finished = storage.finishSessions(
    HOME,
    sessions.map((session, index) => ({ session, offset: 1, commit: commit(`/a/${index}`) })),
  );
  expect(await largestStep(finished, () => count(storage, '/a'))).toBeLessThan(STEP_MAX);
  expect(await finished).toHaveLength(ENTRIES);
  expect(await count(storage, '/a')).toBe(ENTRIES + 1);
});

test('createFolders, relocateAll and removeAll let other calls run between their entries', async () => {
  const storage = await opened();
  const folders = storage.createFolders(
    HOME,
    indexes.slice(0, 50).map((index) => `/deep/${index}${'/x'.repeat(30)}`),
    false,
  );
  expect(await largestStep(folders, () => count(storage, '/deep'))).toBeLessThan(STEP_MAX);
  await Promise.all(indexes.map((index) => put(storage, `/a/${index}`, 'x')));
  const pairs = (from: string, to: string) =>
    indexes.map((index) => ({ from: `${from}/${index}`, to: `${to}/${index}` }));
  const copied = storage.relocateAll(HOME, pairs('/a', '/b'), COPY);
  expect(await largestStep(copied, () => count(storage, '/b'))).toBeLessThan(STEP_MAX);
  const moved = storage.relocateAll(HOME, pairs('/b', '/c'), MOVE);
  expect(await largestStep(moved, () => count(storage, '/c'))).toBeLessThan(STEP_MAX);
  const removed = storage.removeAll(
    HOME,
    indexes.map((index) => ({ address: `/a/${index}` })),
  );
  expect(await largestStep(removed, () => count(storage, '/a'))).toBeLessThan(STEP_MAX);
  expect([await count(storage, '/a'), await count(storage, '/b'), await count(storage, '/c')]).toEqual([
    1,
    1,
    ENTRIES + 1,
  ]);
});

test('300 parallel uploads let other calls run between their commits', async () => {
  const storage = await opened();
  const uploads = Promise.all(indexes.map((index) => put(storage, `/a/${index}`, 'x')));
  expect(await largestStep(uploads, () => count(storage, '/a'))).toBeLessThan(STEP_MAX);
  expect(await count(storage, '/a')).toBe(ENTRIES + 1);
});

test('a batch keeps the outcomes of its first entries when a later step is refused', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const made = storage.createFolders(
    HOME,
    indexes.map((index) => `/${index}`),
    false,
  );
  while ((await count(storage, '')) === 0) await turn();
  await clock.advance(1001);
  const outcomes = await made;
  const refused = outcomes.filter((outcome) => outcome instanceof StorageError);
  expect(outcomes).toHaveLength(ENTRIES);
  expect(new Set(refused.map(({ message }) => message))).toEqual(
    new Set(['write/too_many_write_operations']),
  );
  expect(outcomes.length - refused.length).toBe(await count(storage, ''));
});
