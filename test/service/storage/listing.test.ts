import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import type { ListingScope, Storage, StoredPage } from '../../../src/service/storage/storage.ts';
import { IS_LONG } from '../../support/effort.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { HOME, OWNER, opened, put, refusal } from './opened.ts';

const MOVE = { copy: false, autorename: false };
const ROOT = { path: '', recursive: false, includeDeleted: false };
const ALL = { ...ROOT, recursive: true };

/** Number of changes of other folders that one page passes over: SCAN_MAX of storage/feed/feed.ts. */
const SCANNED_MAX = 10_000;

/** Returns the paths of a page, deletions with a minus. */
function shown(page: StoredPage): string[] {
  return page.entries.map((entry) => (entry.kind === 'deleted' ? '-' : '') + entry.pathDisplay);
}

/** Returns the entries of all pages after a page, and the last cursor. */
async function rest(
  storage: Storage,
  page: StoredPage,
): Promise<{ readonly entries: string[]; readonly cursor: string }> {
  const entries: string[] = [];
  let last = page;
  while (last.hasMore) {
    last = await storage.listContinue(OWNER, last.cursor);
    entries.push(...shown(last));
  }
  return { entries, cursor: last.cursor };
}

async function changes(storage: Storage, cursor: string): Promise<string[]> {
  const page = await storage.listContinue(OWNER, cursor);
  return [...shown(page), ...(await rest(storage, page)).entries];
}

/** Returns all entries of a scope, and the cursor after them. */
async function listed(storage: Storage, scope: Partial<ListingScope> = {}, limit = 100) {
  const page = await storage.list(OWNER, { ...ROOT, ...scope }, limit);
  const more = await rest(storage, page);
  return { entries: [...shown(page), ...more.entries], cursor: more.cursor };
}

test.each([1, 2, 3, 100])('pages of %i list each child exactly once', async (limit) => {
  const storage = await opened();
  const names = ['a', 'B', 'a b', 'a-b', '10', '9', 'é', '日', '\ufb01', '😀'];
  for (const name of names) await put(storage, `/${name}/inside`, name);
  const { entries } = await listed(storage, {}, limit);
  expect(entries.sort()).toEqual(names.map((name) => `/${name}`).sort());
  const all = (await listed(storage, { recursive: true }, limit)).entries;
  expect(new Set(all).size).toBe(20);
  expect(all).toHaveLength(20);
  for (const name of ['/b', '/9', '/é', '/10', '/a']) await storage.remove(HOME, name);
  const withDeleted = (await listed(storage, { includeDeleted: true }, limit)).entries;
  expect(withDeleted).toHaveLength(10);
  expect(withDeleted.filter((entry) => entry.startsWith('-'))).toHaveLength(5);
});

test('a recursive listing of a folder begins with the folder itself, and one of the root does not', async () => {
  const storage = await opened();
  await put(storage, '/Dir/a', 'a');
  expect((await listed(storage, { path: '/dir', recursive: true })).entries).toEqual(['/Dir', '/Dir/a']);
  expect((await listed(storage, { path: '/dir' })).entries).toEqual(['/Dir/a']);
  expect((await listed(storage, { recursive: true })).entries).toEqual(['/Dir', '/Dir/a']);
});

test('list of a file answers not_folder, and of a missing path not_found', async () => {
  const storage = await opened();
  await put(storage, '/a', 'a');
  expect(await refusal(() => storage.list(OWNER, { ...ROOT, path: '/a' }, 10))).toBe('lookup/not_folder');
  expect(await refusal(() => storage.list(OWNER, { ...ROOT, path: '/b' }, 10))).toBe('lookup/not_found');
  expect(await refusal(() => storage.latestCursor(OWNER, { ...ROOT, path: '/b' }))).toBe('lookup/not_found');
  expect(await refusal(() => storage.list(OWNER, { ...ROOT, path: '//' }, 10))).toBe('lookup/malformed_path');
});

test('the changes after a listing are the writes and deletions since', async () => {
  const storage = await opened();
  await put(storage, '/a', 'a');
  const { cursor } = await listed(storage);
  expect(await changes(storage, cursor)).toEqual([]);
  await put(storage, '/b/c', 'c');
  await storage.remove(HOME, '/A');
  expect(await changes(storage, cursor)).toEqual(['/b', '-/a']);
  // The first cursor still works.
  await storage.remove(HOME, '/b');
  expect(await changes(storage, cursor)).toEqual(['-/a', '-/b']);
});

test('writing the same content and moving to another letter case make no change', async () => {
  const storage = await opened();
  await put(storage, '/a', 'same');
  const { cursor } = await listed(storage);
  await put(storage, '/a', 'same');
  await storage.relocate(HOME, '/a', '/A', MOVE);
  expect(await changes(storage, cursor)).toEqual([]);
});

test('a removed folder is one change, and a moved one a deletion and its new entries', async () => {
  const storage = await opened();
  for (const name of ['a', 'b', 'c']) await put(storage, `/Dir/sub/${name}`, name);
  const root = await listed(storage, { recursive: true });
  await storage.relocate(HOME, '/dir', '/New', MOVE);
  expect(await changes(storage, root.cursor)).toEqual([
    '-/Dir',
    '/New',
    '/New/sub',
    '/New/sub/a',
    '/New/sub/b',
    '/New/sub/c',
  ]);
  const moved = await listed(storage, { recursive: true });
  await storage.removeForever(HOME, '/new');
  expect(await changes(storage, moved.cursor)).toEqual(['-/New']);
});

test('a folder that is made again comes after the deletion of the former one in the changes', async () => {
  const storage = await opened();
  for (const name of ['a', 'b']) await put(storage, `/Dir/${name}`, name);
  await put(storage, '/Dir/Sub/c', 'c');
  const root = await listed(storage, { recursive: true }, 1);
  const folder = await listed(storage, { path: '/dir' });
  await storage.remove(HOME, '/dir');
  await put(storage, '/dir/b', 'new');
  expect(await changes(storage, root.cursor)).toEqual(['-/dir', '/dir', '/dir/b']);
  // The changes of a non-recursive listing leave out the folder itself.
  expect(await changes(storage, folder.cursor)).toEqual(['-/Dir/a', '-/Dir/Sub', '/dir/b']);
});

test('a folder that is removed and made again twice between small pages comes as a deletion and a folder', async () => {
  const storage = await opened();
  await put(storage, '/a/x', 'x');
  const { cursor } = await listed(storage, { recursive: true }, 1);
  await storage.remove(HOME, '/a');
  await put(storage, '/f1', '1');
  await put(storage, '/f2', '2');
  await storage.createFolder(HOME, '/a', false);
  await storage.remove(HOME, '/a');
  const page = await storage.listContinue(OWNER, cursor);
  expect(shown(page)).toEqual(['/f1']);
  await storage.createFolder(HOME, '/a', false);
  expect((await rest(storage, page)).entries).toEqual(['/f2', '-/a', '/a']);
});

test('a cursor of a removed folder answers not_found, and not_folder once a file has its path', async () => {
  const storage = await opened();
  await put(storage, '/dir/a', 'a');
  const { cursor } = await listed(storage, { path: '/dir' });
  await storage.remove(HOME, '/dir');
  expect(await refusal(() => storage.listContinue(OWNER, cursor))).toBe('lookup/not_found');
  await put(storage, '/dir', 'a file');
  expect(await refusal(() => storage.listContinue(OWNER, cursor))).toBe('lookup/not_folder');
});

test('a change made between two pages of a listing is on a later page', async () => {
  const storage = await opened();
  for (const name of ['b', 'd', 'f', 'h']) await put(storage, `/${name}`, name);
  const page = await storage.list(OWNER, ROOT, 2);
  expect(shown(page)).toEqual(['/b', '/d']);
  await put(storage, '/a', 'before the position');
  await storage.relocate(HOME, '/h', '/c', MOVE);
  await storage.remove(HOME, '/b');
  const { entries } = await rest(storage, page);
  expect(entries).toEqual(expect.arrayContaining(['/f', '/a', '/c', '-/b', '-/h']));
});

// Making the folders takes 4 s of processor time.
if (IS_LONG)
  test('a page of changes passes over 10,000 changes of other folders and then answers hasMore', async () => {
    const storage = await opened();
    await put(storage, '/quiet/a', 'a');
    const { cursor } = await listed(storage, { path: '/quiet', recursive: true });
    const paths = Array.from({ length: SCANNED_MAX + 1 }, (_, index) => `/busy/${index}`);
    await storage.createFolders(HOME, paths, false);
    const page = await storage.listContinue(OWNER, cursor);
    expect(page).toMatchObject({ entries: [], hasMore: true });
    await put(storage, '/quiet/b', 'b');
    expect(await changes(storage, page.cursor)).toEqual(['/quiet/b']);
  });

test('a latest cursor answers later changes alone', async () => {
  const storage = await opened();
  await put(storage, '/a', 'a');
  const cursor = await storage.latestCursor(OWNER, ALL);
  expect(await changes(storage, cursor)).toEqual([]);
  await put(storage, '/b', 'b');
  expect(await changes(storage, cursor)).toEqual(['/b']);
});

test('a cursor works after a restart, also in the middle of a listing', async () => {
  const storage = await opened();
  for (const name of ['a', 'b', 'c']) await put(storage, `/${name}`, name);
  const half = (await storage.list(OWNER, ROOT, 2)).cursor;
  const { cursor } = await listed(storage);
  await storage.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  expect(shown(await again.listContinue(OWNER, half))).toEqual(['/c']);
  await put(again, '/d', 'd');
  expect(await changes(again, cursor)).toEqual(['/d']);
});

test('a forged cursor and one of another account are malformed, and one of another storage is reset', async () => {
  const storage = await opened();
  const { cursor } = await listed(storage);
  const otherAccount = { ...OWNER, account: 'dbid:two' };
  expect(await refusal(() => storage.listContinue(otherAccount, cursor))).toBe('cursor/malformed');
  for (const bad of [
    '',
    'x',
    'AAAA',
    `${cursor}AAAA`,
    cursor.slice(0, -4),
    cursor.replace(/.$/, '!'),
    'a'.repeat(300),
  ])
    expect(await refusal(() => storage.listContinue(OWNER, bad))).toBe('cursor/malformed');
  const bytes = Buffer.from(cursor, 'base64url');
  for (let index = 8; index < bytes.length; index++) {
    const forged = Buffer.from(bytes);
    forged[index] = (forged[index] ?? 0) ^ 1;
    expect(await refusal(() => storage.listContinue(OWNER, forged.toString('base64url')))).toBe(
      'cursor/malformed',
    );
  }
  const elsewhere = await opened();
  expect(await refusal(() => elsewhere.listContinue(OWNER, cursor))).toBe('cursor/reset');
  expect(cursor).toMatch(/^[\w-]{60,400}$/);
});

test('a cursor older than the kept deletions answers reset', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/a', 'a');
  const { cursor } = await listed(storage);
  await storage.removeForever(HOME, '/a');
  const { cursor: later } = await listed(storage);
  await clock.advance(31 * 24 * 60 * 60 * 1000);
  await put(storage, '/b', 'b');
  expect(await changes(storage, cursor)).toEqual(['-/a', '/b']);
  await storage.removeForever(HOME, '/b');
  await storage.tidy();
  expect(await refusal(() => storage.listContinue(OWNER, cursor))).toBe('cursor/reset');
  expect(await changes(storage, later)).toEqual(['-/b']);
});

const never = new AbortController().signal;

test.each([
  ['a new file', ALL, (storage: Storage) => put(storage, '/x/y/z', 'z')],
  ['a new child', ROOT, (storage: Storage) => put(storage, '/z', 'z')],
  ['a deletion', { ...ALL, path: '/dir' }, (storage: Storage) => storage.remove(HOME, '/dir/sub/a')],
  [
    'the removal of its folder',
    { ...ROOT, path: '/dir/sub' },
    (storage: Storage) => storage.remove(HOME, '/dir/sub'),
  ],
  [
    'the removal of a folder above',
    { ...ROOT, path: '/dir/sub' },
    (storage: Storage) => storage.remove(HOME, '/dir'),
  ],
  [
    'a move of a folder above',
    { ...ALL, path: '/dir/sub' },
    (storage: Storage) => storage.relocate(HOME, '/dir', '/new', MOVE),
  ],
  [
    'a move of a folder into it',
    { ...ALL, path: '/other' },
    (storage: Storage) => storage.relocate(HOME, '/dir', '/other/dir', MOVE),
  ],
  [
    'a restore',
    { ...ROOT, path: '/other' },
    async (storage: Storage) => {
      const file = (await storage.revisions(HOME, '/other/gone', { by: 'path', limit: 1 })).entries[0];
      await storage.restore(HOME, '/other/gone', file?.rev ?? '');
    },
  ],
] as const)('%s ends awaitChange on its folder', async (_, scope, change) => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/dir/sub/a', 'a');
  await put(storage, '/other/gone', 'b');
  await storage.remove(HOME, '/other/gone');
  const cursor = await storage.latestCursor(OWNER, scope);
  const waiting = storage.awaitChange(cursor, 30_000, never);
  await clock.untilSleeping();
  await change(storage);
  expect(await waiting).toBe(true);
  expect(clock.sleeping).toBe(0);
  // A later call for the same cursor answers at once.
  expect(await storage.awaitChange(cursor, 30_000, never)).toBe(true);
});

test('awaitChange ignores changes of other folders and answers false after its timeout', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/dir/sub/a', 'a');
  const waiting = storage.awaitChange(
    await storage.latestCursor(OWNER, { ...ROOT, path: '/dir' }),
    30_000,
    never,
  );
  const below = storage.awaitChange(
    await storage.latestCursor(OWNER, { ...ALL, path: '/dir/sub' }),
    30_000,
    never,
  );
  await put(storage, '/dir/sub/a', 'changed');
  await put(storage, '/dirt', 'x');
  expect(await below).toBe(true);
  expect(clock.sleeping).toBe(1);
  await clock.advance(30_000);
  expect(await waiting).toBe(false);
});

test('awaitChange ends when its client disconnects, and answers false when the storage closes', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  const cursor = await storage.latestCursor(OWNER, ALL);
  const leaving = new AbortController();
  const left = storage.awaitChange(cursor, 30_000, leaving.signal);
  leaving.abort(new Error('the client went away'));
  expect(await refusal(left)).toBe('the client went away');
  const waiting = storage.awaitChange(cursor, 30_000, never);
  await storage.close();
  expect(await waiting).toBe(false);
});

test('awaitChange removes its listener from its signal', async () => {
  const storage = await opened();
  const { signal } = new AbortController();
  const waiting = storage.awaitChange(await storage.latestCursor(OWNER, ROOT), 30_000, signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  await put(storage, '/a', 'a');
  expect(await waiting).toBe(true);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a change in one of two folders ends the 500 calls of awaitChange on that folder, of 1,000', async () => {
  const clock = new ManualClock();
  const storage = await opened({ clock });
  await put(storage, '/dir/a', 'a');
  await put(storage, '/other/a', 'a');
  const all = await storage.latestCursor(OWNER, { ...ROOT, path: '/dir' });
  const other = await storage.latestCursor(OWNER, { ...ROOT, path: '/other' });
  const waits = Array.from({ length: 1000 }, (_, index) =>
    storage.awaitChange(index % 2 === 0 ? all : other, 30_000, never),
  );
  await put(storage, '/dir/b', 'b');
  expect(await Promise.all(waits.filter((_, index) => index % 2 === 0))).not.toContain(false);
  expect(clock.sleeping).toBe(500);
  await put(storage, '/other/b', 'b');
  expect(await Promise.all(waits)).not.toContain(false);
});
