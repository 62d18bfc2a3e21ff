import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import { body, bytesOf, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const HISTORY_DAYS = 180;

const textsOf = async (storage: Storage, path: string): Promise<string[]> => {
  const { entries } = await storage.revisions(HOME, path, { by: 'path', limit: 100 });
  return await Promise.all(
    entries.map(async (entry) => String(await bytesOf(storage.read(HOME, entry, undefined)))),
  );
};

const blocksIn = async (dataDirectory: string) => (await readdir(join(dataDirectory, 'blocks'))).length;

test('a deletion can be restored for 180 days and is removed afterwards with its blocks', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const rev = (await put(storage, '/folder/file', pseudoRandomBytes(100_000, 1))).rev;
  await storage.remove(HOME, '/folder');
  await clock.advance(HISTORY_DAYS * DAY_MS);
  await storage.tidy();
  expect((await storage.stat(HOME, '/folder/file', true)).kind).toBe('deleted');
  expect((await storage.revisions(HOME, '/folder/file', { by: 'path', limit: 10 })).entries).toHaveLength(1);
  await clock.advance(1);
  await storage.tidy();
  expect(await refusal(() => storage.stat(HOME, '/folder/file', true))).toBe('lookup/not_found');
  expect(await refusal(() => storage.stat(HOME, '/folder', true))).toBe('lookup/not_found');
  expect(await refusal(storage.restore(HOME, '/folder/file', rev))).toBe('revision/invalid_revision');
  expect((await storage.usage(HOME)).usedBytes).toBe(0);
  await storage.close();
  expect(await blocksIn(storage.dataDirectory)).toBe(0);
  expectSound(storage.dataDirectory);
});

test('housekeeping removes revisions overwritten 180 days ago and never the current one', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/file', 'one');
  await put(storage, '/untouched', 'for years');
  await put(storage, '/was-file', 'before the folder');
  await clock.advance(DAY_MS);
  await put(storage, '/file', 'two');
  await storage.remove(HOME, '/was-file');
  await storage.createFolder(HOME, '/was-file', false);
  await clock.advance(DAY_MS);
  await put(storage, '/file', 'three');
  await clock.advance((HISTORY_DAYS - 1) * DAY_MS + 1);
  await storage.tidy();
  expect(await textsOf(storage, '/file')).toEqual(['three', 'two']);
  await clock.advance(10 * HISTORY_DAYS * DAY_MS);
  await storage.tidy();
  expect(await textsOf(storage, '/file')).toEqual(['three']);
  expect(await textsOf(storage, '/untouched')).toEqual(['for years']);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a moved file keeps its content and id when the history of its old path expires', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const { id } = await put(storage, '/old', 'moved');
  await storage.relocate(HOME, '/old', '/new', { copy: false, autorename: false });
  await clock.advance(2 * HISTORY_DAYS * DAY_MS);
  await storage.tidy();
  expect(await storage.stat(HOME, id, false)).toMatchObject({ pathDisplay: '/new' });
  expect(await textAt(storage, '/new')).toBe('moved');
  expect(await refusal(() => storage.stat(HOME, '/old', true))).toBe('lookup/not_found');
});

test('a cursor from before a deletion that expired answers reset, and one from after it works', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/a', 'a');
  const scope = { path: '', recursive: true, includeDeleted: false };
  const before = await storage.latestCursor(OWNER, scope);
  await storage.remove(HOME, '/a');
  const after = await storage.latestCursor(OWNER, scope);
  await clock.advance(HISTORY_DAYS * DAY_MS + 1);
  await storage.tidy();
  expect(await refusal(() => storage.listContinue(OWNER, before))).toBe('cursor/reset');
  expect((await storage.listContinue(OWNER, after)).entries).toEqual([]);
});

test('housekeeping removes more history than one step takes in one round', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const work: Promise<unknown>[] = [];
  for (let file = 0; file < 450; file++) work.push(put(storage, `/tree/${file}`, `${file}`));
  await Promise.all(work);
  for (let version = 0; version < 450; version++) await put(storage, '/often', `${version}`);
  await storage.remove(HOME, '/often');
  await storage.remove(HOME, '/tree');
  // The deletion of a folder's files is dated when their rows are cleared away, shortly after the removal.
  await storage.tidy();
  await clock.advance((HISTORY_DAYS + 1) * DAY_MS);
  await storage.tidy();
  expect((await storage.usage(HOME)).usedBytes).toBe(0);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('housekeeping removes an expired session of 1,100 pieces and keeps a live one whole', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const start = () => storage.startSession(HOME, 'sequential', body(), false);
  const old = await start();
  for (let offset = 0; offset < 1100; offset++)
    await storage.appendSession(HOME, { session: old, offset }, body('x'), false);
  await clock.advance(1);
  const young = await start();
  await storage.appendSession(HOME, { session: young, offset: 0 }, body(pseudoRandomBytes(70_000, 2)), false);
  await clock.advance(7 * DAY_MS - 1);
  await storage.tidy();
  const append = (session: string, offset: number) =>
    refusal(storage.appendSession(HOME, { session, offset }, body('y'), false));
  expect(await append(old, 1100)).toBe('session/not_found');
  expect(await append(young, 70_000)).toBe('done');
  await storage.close();
  expectSound(storage.dataDirectory);
});
