import { expect, test } from 'vitest';
import {
  type Outcome,
  type Storage,
  StorageError,
  type Stored,
} from '../../../src/service/storage/storage.ts';
import { during } from './large-folder.ts';
import { HOME, opened, put, refusal } from './opened.ts';

const MOVE = { copy: false, autorename: false };

/** Moves of a folder while the lookups run. */
const MOVES = 20;

/** Files in the folder. */
const NAMES = Array.from({ length: 20 }, (_, index) => `file${index}`);

/** Returns a storage with files in `/a/below`. */
async function withFolder(): Promise<Storage> {
  const storage = await opened();
  await Promise.all(NAMES.map((name) => put(storage, `/a/below/${name}`, name)));
  return storage;
}

/** Moves `/a` to `/b` and back, and calls `look` at each turn of the event loop meanwhile. */
async function whileMoving(storage: Storage, look: () => Promise<void>): Promise<void> {
  for (let move = 0; move < MOVES; move++) {
    const [from, to] = move % 2 === 0 ? ['/a', '/b'] : ['/b', '/a'];
    const { turns } = await during(storage.relocate(HOME, from, to, MOVE), look);
    expect(turns).toBeGreaterThan(0);
  }
}

function found(outcome: Outcome<Stored> | undefined): Stored {
  if (!outcome || outcome instanceof StorageError) throw outcome ?? new Error('an outcome is missing');
  return outcome;
}

test('statAll shows all items of a folder before its move, or all after it', async () => {
  const storage = await withFolder();
  const ids = (
    await storage.statAll(
      HOME,
      NAMES.map((name) => `/a/below/${name}`),
    )
  ).map((one) => found(one).id);
  await whileMoving(storage, async () => {
    const items = (await storage.statAll(HOME, ids)).map(found);
    expect(new Set(items.map(({ pathLower }) => pathLower.slice(0, 2))).size).toBe(1);
  });
});

test('statAll returns a refusal in the place of each address without an existing item', async () => {
  const storage = await withFolder();
  await storage.remove(HOME, '/a/below/file1');
  const outcomes = await storage.statAll(HOME, ['/a/below/file0', '/a/below/file1', '/none', '//', '/a']);
  expect(outcomes.map((one) => (one instanceof StorageError ? one.message : one.name))).toEqual([
    'file0',
    'lookup/not_found',
    'lookup/not_found',
    'lookup/malformed_path',
    'a',
  ]);
});

test('statWithFolders returns the folders that contain the item, also while one of them moves', async () => {
  const storage = await withFolder();
  const { id } = found((await storage.statAll(HOME, ['/a/below/file0']))[0]);
  await whileMoving(storage, async () => {
    const [item, ...folders] = await storage.statWithFolders(HOME, id);
    const top = item.pathDisplay.slice(0, 2);
    expect(folders.map(({ pathDisplay }) => pathDisplay)).toEqual([`${top}/below`, top]);
  });
});

test('listAll returns a file that moves between two folders below exactly once', async () => {
  const storage = await withFolder();
  await storage.createFolder(HOME, '/a/z', false);
  for (let move = 0; move < MOVES; move++) {
    const [from, to] = move % 2 === 0 ? ['/a/below/file0', '/a/z/file0'] : ['/a/z/file0', '/a/below/file0'];
    await during(storage.relocate(HOME, from, to, MOVE), async () => {
      const all = (await storage.listAll(HOME, '/a', 100)) ?? [];
      expect(all.filter(({ name }) => name === 'file0')).toHaveLength(1);
    });
  }
});

test('listAll returns the folder first and folders before their content, and nothing of more than the maximum', async () => {
  const storage = await opened();
  await put(storage, '/Top/one/two/file', 'text');
  await put(storage, '/Top/a', 'text');
  await put(storage, '/Top-other', 'text');
  const paths = (await storage.listAll(HOME, '/top', 5))?.map(({ pathDisplay }) => pathDisplay);
  expect(paths).toEqual(['/Top', '/Top/a', '/Top/one', '/Top/one/two', '/Top/one/two/file']);
  expect(await storage.listAll(HOME, '/top', 4)).toBeUndefined();
  expect(await refusal(storage.listAll(HOME, '/top/a', 5))).toBe('lookup/not_folder');
  expect(await refusal(storage.listAll(HOME, '/none', 5))).toBe('lookup/not_found');
  expect(await refusal(storage.listAll(HOME, '', 5))).toBe('lookup/malformed_path');
});

test('read of a revision of another namespace throws not_found', async () => {
  const storage = await opened();
  const file = await put(storage, '/file', 'text');
  await storage.createNamespace('other', 1000);
  const reading = storage.read('other', file, undefined)[Symbol.asyncIterator]();
  expect(await refusal(reading.next())).toBe('lookup/not_found');
});
