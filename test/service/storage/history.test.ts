import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { bytesOf, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const MOVE = { copy: false, autorename: false };

async function texts(
  storage: Storage,
  path: string,
  by: 'path' | 'id' = 'path',
  limit = 100,
): Promise<string[]> {
  const page = await storage.revisions(HOME, path, { by, limit });
  return Promise.all(
    page.entries.map(async (file) => (await bytesOf(storage.read(HOME, file, undefined))).toString()),
  );
}

test('a removed file is found with includeDeleted alone', async () => {
  const storage = await opened();
  const file = await put(storage, '/Dir/a.txt', 'x');
  expect(await storage.remove(HOME, '/dir/A.txt')).toEqual(file);
  expect(await refusal(() => storage.stat(HOME, '/Dir/a.txt', false))).toBe('lookup/not_found');
  const deletion = {
    kind: 'deleted',
    name: 'a.txt',
    pathLower: '/dir/a.txt',
    pathDisplay: '/Dir/a.txt',
    restorable: true,
  };
  expect(await storage.stat(HOME, '/dir/a.txt', true)).toEqual(deletion);
  expect(await storage.stat(HOME, file.id, true)).toEqual(deletion);
  const scope = { path: '/dir', recursive: false };
  expect((await storage.list(OWNER, { ...scope, includeDeleted: true }, 10)).entries).toEqual([deletion]);
  expect((await storage.list(OWNER, { ...scope, includeDeleted: false }, 10)).entries).toEqual([]);
  expect(await refusal(storage.remove(HOME, '/dir/a.txt'))).toBe('lookup/not_found');
});

test('remove and removeForever with an old parent_rev answer a conflict', async () => {
  const storage = await opened();
  const old = await put(storage, '/a', '1');
  const current = await put(storage, '/a', '2');
  await storage.createFolder(HOME, '/dir', false);
  expect(await refusal(storage.remove(HOME, '/a', old.rev))).toBe('conflict/file');
  expect(await refusal(storage.removeForever(HOME, '/a', 'abcdef0123'))).toBe('conflict/file');
  expect(await refusal(storage.remove(HOME, '/dir', current.rev))).toBe('conflict/folder');
  expect(await refusal(storage.remove(HOME, '/a', current.rev))).toBe('done');
});

test.each([
  ['of no file', () => 'abcdef0123'],
  ['of the file before', (rev: string) => rev],
])(
  'removeForever of a deleted file with a parent_rev %s answers a conflict, and restore still works',
  async (_, parentRev) => {
    const storage = await opened();
    const { rev } = await put(storage, '/a', 'text');
    await storage.remove(HOME, '/a');
    expect(await refusal(storage.removeForever(HOME, '/a', parentRev(rev)))).toBe('conflict/file');
    await storage.restore(HOME, '/a', rev);
    expect(await textAt(storage, '/a')).toBe('text');
  },
);

test('revisions are listed newest first, by path and by id', async () => {
  const storage = await opened();
  for (const text of ['1', '2', '3']) await put(storage, '/a', text);
  const { id } = (await storage.relocate(HOME, '/a', '/b', MOVE)) as { id: string };
  await put(storage, '/b', '4');
  expect(await texts(storage, '/b')).toEqual(['4', '3']);
  expect(await texts(storage, '/b', 'id')).toEqual(['4', '3', '3', '2', '1']);
  expect(await texts(storage, id, 'id', 2)).toEqual(['4', '3']);
  expect(await storage.revisions(HOME, '/a', { by: 'path', limit: 100 })).toMatchObject({ deleted: true });
  expect(await texts(storage, '/a')).toEqual(['3', '2', '1']);
  const newest = await storage.revisions(HOME, '/a', { by: 'path', limit: 2 });
  expect(newest.hasMore).toBe(true);
  const older = await storage.revisions(HOME, '/a', {
    by: 'path',
    limit: 2,
    beforeRev: newest.entries[1]?.rev ?? '',
  });
  expect(older).toMatchObject({ hasMore: false, entries: [{ sizeBytes: 1 }] });
});

test('revisions of a folder, a missing path or an unknown before_rev are refused', async () => {
  const storage = await opened();
  await put(storage, '/dir/a', '1');
  const options = { by: 'path', limit: 10 } as const;
  expect(await refusal(() => storage.revisions(HOME, '/dir', options))).toBe('lookup/not_file');
  expect(await refusal(() => storage.revisions(HOME, '/none', options))).toBe('lookup/not_found');
  expect(
    await refusal(() => storage.revisions(HOME, '/dir/a', { ...options, beforeRev: 'abcdef0123' })),
  ).toBe('revision/invalid_before_rev');
  await storage.remove(HOME, '/dir');
  expect(await refusal(() => storage.revisions(HOME, '/dir', options))).toBe('lookup/not_file');
});

test('an old revision is found by its rev, and a rev of another storage is not', async () => {
  const storage = await opened();
  const old = await put(storage, '/a', '1');
  await put(storage, '/a', '2');
  expect(await storage.stat(HOME, `rev:${old.rev}`, false)).toEqual(old);
  const other = await put(await opened(), '/a', '1');
  for (const rev of [other.rev, 'abcdef0123', old.rev.toUpperCase(), `${old.rev}0`])
    expect(await refusal(() => storage.stat(HOME, `rev:${rev}`, false))).toBe('lookup/not_found');
});

test('restore brings back the old content and client time under a new rev, with its folders', async () => {
  let nowMs = 1_700_000_000_000;
  const storage = await opened({
    clock: { ...systemClock, now: () => nowMs, sleep: () => Promise.resolve() },
  });
  const first = await put(storage, '/Dir/Deep/a.txt', 'first');
  await put(storage, '/Dir/Deep/a.txt', 'second');
  await storage.remove(HOME, '/dir');
  nowMs += 60_000;
  const restored = await storage.restore(HOME, '/DIR/deep/A.TXT', first.rev);
  expect(restored).toEqual({ ...first, rev: restored.rev, serverModifiedMs: nowMs });
  expect(restored.rev > first.rev).toBe(true);
  expect(await textAt(storage, '/dir/deep/a.txt')).toBe('first');
  const over = await put(storage, '/Dir/Deep/a.txt', 'third');
  expect(await storage.restore(HOME, '/dir/deep/a.txt', restored.rev)).toMatchObject({
    id: over.id,
    sizeBytes: 5,
  });
});

test('restore at the old path of a moved file makes a new file', async () => {
  const storage = await opened();
  const file = await put(storage, '/a', 'x');
  await storage.relocate(HOME, '/a', '/b', MOVE);
  const restored = await storage.restore(HOME, '/a', file.rev);
  expect(restored.id).not.toBe(file.id);
  expect((await storage.stat(HOME, file.id, false)).name).toBe('b');
});

test('restore refuses a rev of another file, a folder at the path and a file above it', async () => {
  const storage = await opened();
  const other = await put(storage, '/other', 'x');
  const file = await put(storage, '/dir/a', 'y');
  await storage.remove(HOME, '/dir/a');
  for (const rev of [other.rev, 'abcdef0123'])
    expect(await refusal(storage.restore(HOME, '/dir/a', rev))).toBe('revision/invalid_revision');
  expect(await refusal(storage.restore(HOME, '/dir', file.rev))).toBe('conflict/folder');
  await storage.remove(HOME, '/dir');
  await put(storage, '/dir', 'a file now');
  expect(await refusal(storage.restore(HOME, '/dir/a', file.rev))).toBe('conflict/file_ancestor');
});

test('usage counts every live file with its copies, and a content that only history has once', async () => {
  const storage = await opened({}, 1000);
  await put(storage, '/a', 'x'.repeat(400));
  await put(storage, '/b', 'x'.repeat(400));
  await storage.relocate(HOME, '/b', '/c', MOVE);
  expect(await storage.usage(HOME)).toEqual({ usedBytes: 800, limitBytes: 1000 });
  expect(await refusal(storage.relocate(HOME, '/c', '/too much', { copy: true, autorename: false }))).toBe(
    'write/insufficient_space',
  );
  expect((await storage.usage(HOME)).usedBytes).toBe(800);
  await put(storage, '/a', 'y'.repeat(600));
  expect((await storage.usage(HOME)).usedBytes).toBe(1000);
  expect(await refusal(put(storage, '/new/d', 'z'))).toBe('write/insufficient_space');
  expect(await refusal(() => storage.stat(HOME, '/new', false))).toBe('lookup/not_found');
  await storage.remove(HOME, '/a');
  expect(await refusal(put(storage, '/d', 'z'))).toBe('write/insufficient_space');
  await storage.removeForever(HOME, '/a');
  expect((await storage.usage(HOME)).usedBytes).toBe(400);
  expect(await refusal(put(storage, '/d', 'z'))).toBe('done');
});

test('removeForever removes the history and the blocks of its folder and nothing else', async () => {
  const storage = await opened();
  const shared = Buffer.alloc(100_000, 'shared');
  const first = await put(storage, '/gone/a', 'first');
  await put(storage, '/gone/a', Buffer.alloc(200_000, 'own'));
  await put(storage, '/gone/b', shared);
  await put(storage, '/keep/b', shared);
  await storage.relocate(HOME, '/gone/b', '/keep/c', MOVE);
  await storage.remove(HOME, '/gone/a');
  await storage.removeForever(HOME, '/gone');
  await storage.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  for (const address of ['/gone', '/gone/a', '/gone/b', first.id, `rev:${first.rev}`])
    expect(await refusal(() => again.stat(HOME, address, true))).toBe('lookup/not_found');
  expect(await refusal(() => again.revisions(HOME, '/gone/a', { by: 'path', limit: 1 }))).toBe(
    'lookup/not_found',
  );
  expect(await refusal(again.restore(HOME, '/gone/a', first.rev))).toBe('revision/invalid_revision');
  expect(await refusal(again.removeForever(HOME, '/gone'))).toBe('lookup/not_found');
  for (const path of ['/keep/b', '/keep/c']) expect((await textAt(again, path)).length).toBe(100_000);
  expect((await again.usage(HOME)).usedBytes).toBe(200_000);
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(1);
});

test('removeForever of a moved file removes its history at the old path', async () => {
  const storage = await opened();
  const file = await put(storage, '/old', 'secret');
  await storage.relocate(HOME, '/old', '/new', MOVE);
  await storage.removeForever(HOME, '/new');
  expect(await refusal(() => storage.stat(HOME, '/old', true))).toBe('lookup/not_found');
  expect(await refusal(storage.restore(HOME, '/old', file.rev))).toBe('revision/invalid_revision');
  expect((await storage.usage(HOME)).usedBytes).toBe(0);
});

test('removeForever of the old path of a moved file keeps the file', async () => {
  const storage = await opened();
  await put(storage, '/a', 'x');
  await storage.relocate(HOME, '/a', '/b', MOVE);
  await storage.removeForever(HOME, '/a');
  expect(await textAt(storage, '/b')).toBe('x');
  expect(await texts(storage, '/b', 'id')).toEqual(['x']);
});

test('removeForever of 700 files hides them at once, and their space is free after a restart', async () => {
  const storage = await opened();
  await Promise.all(
    Array.from({ length: 700 }, (_, index) => put(storage, `/big/${index}`, `content ${index}`)),
  );
  await storage.removeForever(HOME, '/big');
  expect(await refusal(() => storage.stat(HOME, '/big/699', true))).toBe('lookup/not_found');
  await storage.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  await eventually(async () => expect((await again.usage(HOME)).usedBytes).toBe(0));
});

test('a read that has begun is whole although its file is removed forever meanwhile', async () => {
  const storage = await opened();
  const bytes = Buffer.alloc(20_000_000, 'content');
  const file = await put(storage, '/a', bytes);
  const reading = storage.read(HOME, file, undefined)[Symbol.asyncIterator]();
  const first = await reading.next();
  await storage.removeForever(HOME, '/a');
  const rest = await bytesOf({ [Symbol.asyncIterator]: () => reading });
  expect(first.value?.length + rest.length).toBe(bytes.length);
  expect(await refusal(bytesOf(storage.read(HOME, file, undefined)))).toBe('lookup/not_found');
  await storage.close();
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toEqual([]);
});

test('removeForever of a folder keeps a file that was moved out of it and deleted elsewhere', async () => {
  const storage = await opened();
  await put(storage, '/folder/file', 'text');
  await storage.relocate(HOME, '/folder/file', '/moved', { copy: false, autorename: false });
  // Removes only the history at the file's old path.
  await storage.removeForever(HOME, '/folder/file');
  const { rev } = (await storage.stat(HOME, '/moved', false)) as { rev: string };
  await storage.remove(HOME, '/moved');
  await storage.removeForever(HOME, '/folder');
  expect((await storage.restore(HOME, '/moved', rev)).pathDisplay).toBe('/moved');
  expect(await textAt(storage, '/moved')).toBe('text');
});
