import { expect, test } from 'vitest';
import type { Storage } from '../../../src/service/storage/storage.ts';
import { expectSound } from './invariants.ts';
import { HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';
import { at, openedTree } from './opened-tree.ts';

/** Number of folders: more than two transactions of 200 rows clear away. */
const FOLDERS = 500;
const ALL = { path: '', recursive: true, includeDeleted: false };

/** Opens a storage with a folder of many folders and a file. */
async function withLargeFolder(): Promise<Storage & { readonly dataDirectory: string }> {
  const storage = await opened();
  const paths = Array.from({ length: FOLDERS }, (_, index) => `/large/${index}`);
  await storage.createFolders(HOME, paths, false);
  await put(storage, '/large/note', 'text');
  return storage;
}

/** Returns the paths of all entries of a scope, deletions with a minus. */
async function listed(storage: Storage, scope = ALL): Promise<string[]> {
  const entries: string[] = [];
  for (
    let page = await storage.list(OWNER, scope, 100);
    ;
    page = await storage.listContinue(OWNER, page.cursor)
  ) {
    entries.push(
      ...page.entries.map(({ kind, pathDisplay }) => (kind === 'deleted' ? '-' : '') + pathDisplay),
    );
    if (!page.hasMore) return entries;
  }
}

test('a transaction clears away no more rows of a removed tree than its limit', async () => {
  const { database, removals, tree, transaction, count } = await openedTree();
  database.exec('BEGIN');
  for (let index = 0; index < 1000; index++) {
    tree.putFolder(transaction(0), 1, at(`/large/${index % 10}/${index}`));
  }
  database.exec('COMMIT');
  const large = tree.find(1, { parent: '/', nameKey: 'large' });
  if (!large) throw new Error('the folder is there');
  expect(count('entry')).toBe(1011);

  tree.remove(transaction(100), large, { forever: false, moved: false });
  expect([count('entry'), count('deletion')]).toEqual([910, 101]);
  expect(tree.find(1, { parent: '/large/9/', nameKey: '999' })).toBeUndefined();
  let steps = 0;
  for (; !removals.isEmpty; steps++) {
    const before = count('entry');
    removals.step(transaction(100));
    expect(before - count('entry')).toBeLessThanOrEqual(100);
  }
  expect(steps).toBeGreaterThanOrEqual(10);
  expect([count('entry'), count('deletion'), count('removal')]).toEqual([0, 1011, 0]);
});

test('a removed large folder is gone at once, and its history can be restored before its rows are cleared away', async () => {
  const storage = await withLargeFolder();
  const { cursor } = await storage.list(OWNER, ALL, 200);
  const before = await storage.latestCursor(OWNER, ALL);
  await storage.remove(HOME, '/large');
  expect(await refusal(() => storage.stat(HOME, '/large/note', false))).toBe('lookup/not_found');
  expect((await storage.stat(HOME, '/large/note', true)).kind).toBe('deleted');
  expect((await storage.revisions(HOME, '/large/note', { by: 'path', limit: 1 })).deleted).toBe(true);
  expect(await listed(storage)).toEqual([]);
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toHaveLength(FOLDERS + 2);
  expect((await storage.listContinue(OWNER, before)).entries.map(({ pathDisplay }) => pathDisplay)).toEqual([
    '/large',
  ]);
  expect(
    (await storage.listContinue(OWNER, cursor)).entries.filter(({ kind }) => kind !== 'deleted'),
  ).toEqual([]);

  const rev = (await storage.revisions(HOME, '/large/note', { by: 'path', limit: 1 })).entries[0]?.rev ?? '';
  await storage.restore(HOME, '/large/note', rev);
  await storage.createFolder(HOME, '/large/499', false);
  expect((await listed(storage)).sort()).toEqual(['/large', '/large/499', '/large/note']);
  expect(await textAt(storage, '/large/note')).toBe('text');
  await storage.tidy();
  expect((await listed(storage)).sort()).toEqual(['/large', '/large/499', '/large/note']);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large folder removed forever is unreachable at once with its history, also after a restart before its rows are cleared away', async () => {
  const storage = await withLargeFolder();
  const { rev } = await put(storage, '/large/zzz', 'old');
  await storage.removeForever(HOME, '/large');
  for (const path of ['/large', '/large/note', '/large/zzz', '/large/499'])
    expect(await refusal(() => storage.stat(HOME, path, true))).toBe('lookup/not_found');
  expect(await refusal(() => storage.stat(HOME, `rev:${rev}`, false))).toBe('lookup/not_found');
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual([]);
  await storage.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  expect(await refusal(() => again.stat(HOME, '/large/zzz', true))).toBe('lookup/not_found');
  await again.tidy();
  expect((await again.usage(HOME)).usedBytes).toBe(0);
  await again.close();
  expectSound(storage.dataDirectory);
});

test('a file can be restored after the removal forever of its former folder, however late that is cleared away', async () => {
  for (const isReplaced of [false, true]) {
    const storage = await opened({ removedRowsMax: 1 });
    const paths = Array.from({ length: 50 }, (_, index) => `/old/${index}`);
    await storage.createFolders(HOME, paths, false);
    await put(storage, '/old/file', 'text');
    await storage.relocate(HOME, '/old/file', '/new/file', { copy: false, autorename: false });
    await storage.removeForever(HOME, '/old');
    const [{ rev } = { rev: '' }] = (await storage.revisions(HOME, '/new/file', { by: 'path', limit: 1 }))
      .entries;
    await storage.remove(HOME, '/new');
    if (isReplaced) await storage.createFolder(HOME, '/new/file', false);
    else expect((await storage.stat(HOME, '/new/file', true)).kind).toBe('deleted');
    await storage.tidy();
    if (isReplaced) await storage.remove(HOME, '/new/file');
    else expect((await storage.stat(HOME, '/new/file', true)).kind).toBe('deleted');
    await storage.restore(HOME, '/new/file', rev);
    expect(await textAt(storage, '/new/file')).toBe('text');
    expect(await refusal(() => storage.stat(HOME, '/old/file', true))).toBe('lookup/not_found');
    await storage.close();
    expectSound(storage.dataDirectory);
  }
});

test('a file removed forever leaves no deletion at the old path of its moved folder, also before that move is cleared away', async () => {
  const storage = await opened({ removedRowsMax: 1, stagedRowsMax: 1 });
  await put(storage, '/old/folder/file', 'text');
  await storage.relocate(HOME, '/old', '/new', { copy: false, autorename: false });
  await storage.removeForever(HOME, '/new');
  const left = ['-/old', '-/old/folder'];
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual(left);
  await storage.tidy();
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual(left);
});

test('a file removed forever has no deletion at any of its paths, also when another file takes one of them first', async () => {
  const storage = await opened({ removedRowsMax: 1 });
  const paths = Array.from({ length: 50 }, (_, index) => `/old/${index}`);
  await storage.createFolders(HOME, paths, false);
  await put(storage, '/old/file', 'text');
  await storage.relocate(HOME, '/old/file', '/later', { copy: false, autorename: false });
  await storage.remove(HOME, '/later');
  await storage.removeForever(HOME, '/old');
  await put(storage, '/old/file', 'new');
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual(['/old', '/old/file']);
  await storage.tidy();
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual(['/old', '/old/file']);
});

test('a path from which two files moved that were removed forever has no deletion, in either order of clearing away', async () => {
  const storage = await opened({ removedRowsMax: 1 });
  const paths = Array.from({ length: 50 }, (_, index) => `/new/${index}`);
  await storage.createFolders(HOME, paths, false);
  for (const name of ['z', 'a']) {
    await put(storage, '/left', name);
    await storage.relocate(HOME, '/left', `/new/${name}`, { copy: false, autorename: false });
  }
  await storage.removeForever(HOME, '/new');
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual([]);
  await storage.tidy();
  expect(await listed(storage, { ...ALL, includeDeleted: true })).toEqual([]);
});
