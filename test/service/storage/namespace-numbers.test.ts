import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkStorage } from '../../../src/service/storage/check/storage-check.ts';
import type { Storage, StoredFile } from '../../../src/service/storage/storage.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import { underWay } from './large-folder.ts';
import { toVersion11 } from './old-schema.ts';
import { body, bytesOf, commit, HOME, OWNER, opened, put, refusal } from './opened.ts';

const OTHER = 'other';
const OVERWRITE = { mode: { tag: 'overwrite' } } as const;
const ALL = { path: '', recursive: true, includeDeleted: false };

const putInOther = (storage: Storage, path: string, text: string): Promise<StoredFile> =>
  storage.upload(OTHER, commit(path, OVERWRITE), body(text));

async function textOf(storage: Storage, namespace: string, file: StoredFile): Promise<string> {
  return String(await bytesOf(storage.read(namespace, file, undefined)));
}

test('files of two namespaces with one rev have their own bytes, history and life', async () => {
  const storage = await opened();
  await storage.createNamespace(OTHER, 2 ** 40);
  const [mine, theirs] = [await put(storage, '/file', 'mine'), await putInOther(storage, '/file', 'theirs')];
  expect(mine.rev).toBe(theirs.rev);
  const address = `rev:${mine.rev}`;
  expect([await storage.stat(HOME, address, false), await storage.stat(OTHER, address, false)]).toEqual([
    mine,
    theirs,
  ]);
  expect([await textOf(storage, HOME, mine), await textOf(storage, OTHER, theirs)]).toEqual([
    'mine',
    'theirs',
  ]);
  await put(storage, '/file', 'mine again');
  await storage.restore(HOME, '/file', mine.rev);
  await storage.removeForever(OTHER, '/file');
  await storage.tidy();
  expect(await refusal(storage.stat(OTHER, address, false))).toBe('lookup/not_found');
  expect(await textOf(storage, HOME, mine)).toBe('mine');
  expect((await storage.revisions(HOME, '/file', { by: 'path', limit: 10 })).entries).toHaveLength(3);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a change in one namespace does not change the cursor of another', async () => {
  const storage = await opened();
  await storage.createNamespace(OTHER, 2 ** 40);
  await put(storage, '/file', 'mine');
  const before = await storage.latestCursor(OWNER, ALL);
  await putInOther(storage, '/file', 'theirs');
  expect(await storage.latestCursor(OWNER, ALL)).toBe(before);
});

test('a large move under way hides nothing of a namespace that issues the same numbers', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock, stagedRowsMax: 2, removedRowsMax: 2, commitWaitMs: 3_600_000 });
  await storage.createNamespace(OTHER, 2 ** 40);
  await Promise.all(Array.from({ length: 20 }, (_, index) => put(storage, `/a/${index}`, 'text')));
  const moved = storage.relocate(HOME, '/a', '/b', { copy: false, autorename: false });
  await underWay();
  // The move has reserved the numbers of this moment.
  await clock.advance(60_000);
  await Promise.all(Array.from({ length: 5 }, (_, index) => putInOther(storage, `/${index}`, 'text')));
  const owner = { ...OWNER, namespace: OTHER };
  expect((await storage.list(owner, ALL, 100)).entries).toHaveLength(5);
  await moved;
  expect((await storage.list(owner, ALL, 100)).entries).toHaveLength(5);
  expect((await storage.list(OWNER, { ...ALL, path: '/b' }, 100)).entries).toHaveLength(21);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a search by time finds each deleted file of a namespace once, also where another has the same numbers', async () => {
  const storage = await opened();
  await storage.createNamespace(OTHER, 2 ** 40);
  const names = Array.from({ length: 700 }, (_, index) => `/note ${index}`);
  for (const namespace of [HOME, OTHER]) {
    await storage.createFolders(namespace, names, false);
    await storage.removeAll(
      namespace,
      names.map((address) => ({ address })),
    );
  }
  // One more, so that a page of the search ends between two deletions with one number.
  await storage.createFolder(OTHER, '/last', false);
  await storage.remove(OTHER, '/last');
  const found: string[] = [];
  const filter = { parts: [], matches: () => true };
  for await (const items of storage.findNames(HOME, { path: '', deleted: true }, { by: 'change' }, filter))
    found.push(...items.map(({ pathDisplay }) => pathDisplay));
  expect(found.sort()).toEqual(names.sort());
});

test('revs, ids and cursors of a data directory with shared numbers stay valid after its upgrade', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await storage.createNamespace(OTHER, 2 ** 40);
  const files: [string, StoredFile, string][] = [];
  for (let round = 0; round < 4; round++) {
    await clock.advance(1000);
    files.push([HOME, await put(storage, '/dir/file', `mine ${round}`), `mine ${round}`]);
    await clock.advance(1000);
    files.push([OTHER, await putInOther(storage, `/file ${round}`, `theirs ${round}`), `theirs ${round}`]);
  }
  await clock.advance(1000);
  await storage.remove(OTHER, '/file 0');
  const cursor = await storage.latestCursor(OWNER, ALL);
  const half = (await storage.list(OWNER, ALL, 1)).cursor;
  await clock.advance(1000);
  await put(storage, '/later', 'text');
  await storage.close();
  const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.close();
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);

  const upgraded = await opened({ dataDirectory: storage.dataDirectory, clock });
  for (const [namespace, file, text] of files) {
    expect(await upgraded.stat(namespace, `rev:${file.rev}`, false)).toEqual(file);
    expect(await textOf(upgraded, namespace, file)).toBe(text);
    expect((await upgraded.stat(namespace, file.id, true)).pathLower).toBe(file.pathLower);
  }
  expect((await upgraded.listContinue(OWNER, cursor)).entries.map(({ name }) => name)).toEqual(['later']);
  expect((await upgraded.listContinue(OWNER, half)).entries.length).toBeGreaterThan(0);
  const newest = await put(upgraded, '/dir/file', 'new');
  for (const [, { rev }] of files) expect(newest.rev > rev).toBe(true);
  expect(await upgraded.restore(OTHER, '/file 0', files[1]?.[1].rev ?? '')).toMatchObject({ name: 'file 0' });
  await upgraded.close();
  expectSound(storage.dataDirectory);
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
});

async function damagesOf(dataDirectory: string): Promise<string[]> {
  const damages: string[] = [];
  for await (const { what } of checkStorage({ dataDirectory }, () => undefined)) damages.push(what);
  return damages;
}
