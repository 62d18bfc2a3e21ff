import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Storage, StorageError } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { IS_LONG } from '../../support/effort.ts';
import { HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const MOVE = { copy: false, autorename: false };
const COPY = { copy: true, autorename: false };

async function tree(storage: Storage): Promise<string[]> {
  return (await storage.list(OWNER, { path: '', recursive: true, includeDeleted: false }, 2000)).entries.map(
    (entry) => entry.pathDisplay,
  );
}

test('a move keeps id and client time and sets a new rev and server time', async () => {
  let nowMs = 1_700_000_000_000;
  const storage = await opened({
    clock: { ...systemClock, now: () => nowMs, sleep: () => Promise.resolve() },
  });
  const before = await put(storage, '/a.txt', 'x');
  nowMs += 5000;
  const after = await storage.relocate(HOME, '/A.TXT', '/New/Folder/b.txt', MOVE);
  expect(after).toEqual({
    ...before,
    name: 'b.txt',
    pathLower: '/new/folder/b.txt',
    pathDisplay: '/New/Folder/b.txt',
    rev: expect.not.stringMatching(before.rev),
    serverModifiedMs: nowMs,
  });
  expect(await tree(storage)).toEqual(['/New', '/New/Folder', '/New/Folder/b.txt']);
  expect(await storage.stat(HOME, before.id, false)).toEqual(after);
});

test('a copy has its own id, counts in the usage and shares its block', async () => {
  const storage = await opened();
  const text = 'x'.repeat(100_000);
  const before = await put(storage, '/a.txt', text);
  const copy = await storage.relocate(HOME, '/a.txt', '/b.txt', COPY);
  expect(copy).toMatchObject({
    kind: 'file',
    clientModifiedMs: before.clientModifiedMs,
    contentHash: before.contentHash,
  });
  expect(copy.id).not.toBe(before.id);
  expect((await storage.usage(HOME)).usedBytes).toBe(200_000);
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(1);
  await put(storage, '/a.txt', 'changed');
  expect(await textAt(storage, '/b.txt')).toBe(text);
});

test('a move keeps the ids of a whole tree, and a copy makes new ones', async () => {
  const storage = await opened();
  await put(storage, '/Old/One/a', 'a');
  await put(storage, '/Old/b', 'b');
  await storage.createFolder(HOME, '/Old/Empty', false);
  const ids = await storage.statAll(HOME, ['/old', '/old/one', '/old/one/a', '/old/b', '/old/empty']);
  expect((await storage.relocate(HOME, '/old', '/Neu', MOVE)).pathDisplay).toBe('/Neu');
  expect(await tree(storage)).toEqual(['/Neu', '/Neu/b', '/Neu/Empty', '/Neu/One', '/Neu/One/a']);
  for (const entry of ids) {
    if (entry instanceof StorageError) throw entry;
    const moved = await storage.stat(HOME, entry.pathLower.replace('/old', '/neu'), false);
    expect(moved).toMatchObject({ id: entry.id });
  }
  await storage.relocate(HOME, '/neu', '/copy', COPY);
  expect(await tree(storage)).toHaveLength(10);
  expect(await textAt(storage, '/copy/one/a')).toBe('a');
  const [one, other] = [
    await storage.stat(HOME, '/neu/one', false),
    await storage.stat(HOME, '/copy/one', false),
  ];
  expect('id' in one && 'id' in other && one.id !== other.id).toBe(true);
});

test('a move to the same path in another letter case changes nothing', async () => {
  const storage = await opened();
  const before = await put(storage, '/Dir/a.txt', 'x');
  expect(await storage.relocate(HOME, '/Dir/a.txt', '/DIR/A.TXT', MOVE)).toEqual(before);
  expect(await storage.stat(HOME, '/dir/a.txt', false)).toEqual(before);
  expect((await storage.relocate(HOME, '/dir', '/DIR', MOVE)).pathDisplay).toBe('/Dir');
  expect(await tree(storage)).toEqual(['/Dir', '/Dir/a.txt']);
});

test('a move or copy onto an entry, below a file or into itself is refused and changes nothing', async () => {
  const storage = await opened();
  await put(storage, '/a/b/file', 'file');
  await put(storage, '/other', 'other');
  const before = await tree(storage);
  expect(await refusal(storage.relocate(HOME, '/other', '/a/b/file', MOVE))).toBe('conflict/file');
  expect(await refusal(storage.relocate(HOME, '/other', '/a/b', COPY))).toBe('conflict/folder');
  expect(await refusal(storage.relocate(HOME, '/a', '/other', MOVE))).toBe('conflict/file');
  expect(await refusal(storage.relocate(HOME, '/a/b', '/a', MOVE))).toBe('conflict/folder');
  expect(await refusal(storage.relocate(HOME, '/a', '/a/b/c', MOVE))).toBe(
    'relocation/cant_move_folder_into_itself',
  );
  expect(await refusal(storage.relocate(HOME, '/a', '/A/new/c', COPY))).toBe(
    'relocation/duplicated_or_nested_paths',
  );
  expect(await refusal(storage.relocate(HOME, '/other', '/other/x', MOVE))).toBe('conflict/file_ancestor');
  expect(await refusal(storage.relocate(HOME, '/a', '/other/x', COPY))).toBe('conflict/file_ancestor');
  expect(await refusal(storage.relocate(HOME, '/other', '/OTHER', COPY))).toBe('conflict/file');
  expect(await tree(storage)).toEqual(before);
});

test('a refused relocation names its side: from for a bad source, to for a bad target', async () => {
  const storage = await opened();
  await put(storage, '/a', 'x');
  await expect(storage.relocate(HOME, '/none', '/b', MOVE)).rejects.toMatchObject({
    side: 'from',
    message: 'lookup/not_found',
  });
  await expect(storage.relocate(HOME, '/a/', '/b', MOVE)).rejects.toMatchObject({
    side: 'from',
    message: 'lookup/malformed_path',
  });
  await expect(storage.relocate(HOME, '/a', '/b/', MOVE)).rejects.toMatchObject({
    side: 'to',
    message: 'write/malformed_path',
  });
});

test('a relocation with autorename takes the next free name', async () => {
  const storage = await opened();
  await put(storage, '/a.txt', 'a');
  await put(storage, '/Dir.d/b', 'b');
  const options = { autorename: true };
  expect((await storage.relocate(HOME, '/a.txt', '/a.txt', { copy: true, ...options })).name).toBe(
    'a (1).txt',
  );
  expect((await storage.relocate(HOME, '/Dir.d', '/dir.D', { copy: true, ...options })).name).toBe(
    'dir.D (1)',
  );
  expect((await storage.relocate(HOME, '/a (1).txt', '/A.txt', { copy: false, ...options })).name).toBe(
    'A (2).txt',
  );
});

// Making the entries takes 9 s of processor time.
if (IS_LONG)
  test('a move or copy of 10,001 files and folders fails with too_many_files and changes nothing, and a move of 10,000 succeeds', async () => {
    const storage = await opened();
    const names = ['one', 'two', 'three', 'four'];
    // These, /a, its four folders and the file are 10,001 entries.
    const paths = names.flatMap((name, index) =>
      Array.from({ length: index === 0 ? 2495 : 2500 }, (_, number) => `/a/${name}/${number}`),
    );
    await storage.createFolders(HOME, paths, false);
    await put(storage, '/a/one/file', 'x');
    expect(await refusal(storage.relocate(HOME, '/a', '/b', MOVE))).toBe('relocation/too_many_files');
    expect(await refusal(storage.relocate(HOME, '/a', '/b', COPY))).toBe('relocation/too_many_files');
    await storage.remove(HOME, '/a/one/1');
    const pairs = [...names, 'one'].map((name, index) => ({
      from: `/a/${name}`,
      to: `/b/${index}`,
    }));
    expect(await refusal(storage.relocateTogether(HOME, pairs, COPY))).toBe('relocation/too_many_files');
    expect(await refusal(() => storage.stat(HOME, '/b', false))).toBe('lookup/not_found');
    expect((await storage.relocate(HOME, '/a', '/b', MOVE)).pathDisplay).toBe('/b');
  });
