import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Storage, StorageError, type StoredPage } from '../../../src/service/storage/storage.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import { body, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const FILES = 60;

/** With what is below it, and the folder below it. */
const ENTRIES = FILES + 2;

/** Rows that one transaction makes. */
const STEP_ROWS = 7;

const MOVE = { copy: false, autorename: false };
const COPY = { copy: true, autorename: false };
const ALL = { path: '', recursive: true, includeDeleted: false };
const DELETED_TOO = { ...ALL, includeDeleted: true };
const STEPS = { stagedRowsMax: STEP_ROWS, removedRowsMax: STEP_ROWS };

/** A home with a folder of so many files that it takes many steps to move it. */
async function withLargeFolder(
  options: Parameters<typeof opened>[0] = {},
  limitBytes?: number,
): Promise<Storage & { readonly dataDirectory: string }> {
  const storage = await opened({ ...STEPS, ...options }, limitBytes);
  await storage.createFolder(HOME, '/Large/Below', false);
  await Promise.all(
    Array.from({ length: FILES }, (_, index) => put(storage, `/Large/Below/${index}`, 'text')),
  );
  await storage.createFolder(HOME, '/other', false);
  return storage;
}

/** Every page of a listing. */
function pagesOf(storage: Storage, scope = ALL): StoredPage['entries'] {
  const entries: StoredPage['entries'][number][] = [];
  for (let page = storage.list(OWNER, scope, 2000); ; page = storage.listContinue(OWNER, page.cursor)) {
    entries.push(...page.entries);
    if (!page.hasMore) return entries;
  }
}

/** How many live entries there are at a path and below it. */
function count(storage: Storage, path: string): number {
  return pagesOf(storage).filter(
    ({ kind, pathLower }) => kind !== 'deleted' && `${pathLower}/`.startsWith(`${path}/`),
  ).length;
}

/** All that is shown, in words. */
function shown(storage: Storage, scope = DELETED_TOO): string[] {
  return pagesOf(storage, scope)
    .map((entry) => `${entry.kind} ${entry.pathDisplay}`)
    .sort();
}

function found(storage: Storage, text: string): number {
  const named = storage.findNames(
    HOME,
    { path: '', deleted: false },
    { by: 'name', text, exact: true },
    { parts: [], matches: () => true },
  );
  return [...named].flat().length;
}

/** Calls `look` at each turn of the event loop while a call runs; how many turns that were. */
async function during<T>(call: Promise<T>, look: () => unknown): Promise<{ result: T; turns: number }> {
  let isRunning = true;
  let turns = 0;
  const ended = call.finally(() => {
    isRunning = false;
  });
  ended.catch(() => undefined);
  for (; isRunning; turns++) {
    await look();
    await turn();
  }
  return { result: await ended, turns };
}

/** Waits until rows of a large move or copy are made, but not all of them. */
async function underWay(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await turn();
}

test.each([
  ['move', MOVE],
  ['copy', COPY],
])('a large %s lets other calls through, and nobody ever sees a part of it', async (_, options) => {
  const storage = await withLargeFolder();
  const { usedBytes } = storage.usage(HOME);
  const cursor = storage.latestCursor(OWNER, ALL);
  const before = shown(storage);
  const { result, turns } = await during(storage.relocate(HOME, '/large', '/New/Place', options), () => {
    const now = shown(storage);
    if (count(storage, '/new') === 0) {
      expect(now).toEqual(before);
      expect(storage.listContinue(OWNER, cursor).entries).toEqual([]);
      expect(storage.listContinue(OWNER, cursor).hasMore).toBe(false);
      expect(found(storage, '59')).toBe(1);
      expect(storage.usage(HOME)).toMatchObject({ usedBytes });
      expect(storage.revisions(HOME, '/large/below/0', { by: 'path', limit: 9 }).entries).toHaveLength(1);
    } else {
      expect([count(storage, '/new/place'), count(storage, '/large')]).toEqual([
        ENTRIES,
        options.copy ? ENTRIES : 0,
      ]);
      expect(found(storage, '59')).toBe(options.copy ? 2 : 1);
    }
  });
  expect(turns).toBeGreaterThan(ENTRIES / STEP_ROWS);
  expect(result).toMatchObject({ kind: 'folder', pathDisplay: '/New/Place' });
  expect(storage.usage(HOME).usedBytes).toBe(usedBytes * (options.copy ? 2 : 1));
  expect(storage.listContinue(OWNER, cursor).entries.filter(({ kind }) => kind !== 'deleted')).toHaveLength(
    ENTRIES + 1,
  );
  expect(await textAt(storage, '/new/place/below/59')).toBe('text');
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a folder is made while a large move is under way', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  const made = storage.createFolder(HOME, '/other/folder', false);
  expect(await Promise.race([moved.then(() => 'moved'), made.then(() => 'made')])).toBe('made');
  expect([count(storage, '/new'), count(storage, '/large')]).toEqual([0, ENTRIES]);
  await moved;
});

test('a folder that comes into another on its move moves with it, and a file that goes stays away', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  // In one transaction, so that the move begins anew but once.
  await Promise.all([
    storage.createFolder(HOME, '/large/late', false),
    storage.remove(HOME, '/large/below/5'),
    storage.relocate(HOME, '/large/below/6', '/large/below/six', MOVE),
  ]);
  await moved;
  expect(storage.stat(HOME, '/new/late', false).kind).toBe('folder');
  expect(await textAt(storage, '/new/below/six')).toBe('text');
  expect([count(storage, '/new'), count(storage, '/large')]).toEqual([ENTRIES, 0]);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move of a folder that never rests is refused after some tries and leaves nothing', async () => {
  const storage = await withLargeFolder();
  let made = 0;
  const moved = during(storage.relocate(HOME, '/large', '/new', MOVE), async () => {
    await storage.createFolder(HOME, '/large/busy', true);
    made++;
  });
  expect(await refusal(moved)).toBe('write/too_many_write_operations');
  await storage.tidy();
  expect([count(storage, '/new'), count(storage, '/large')]).toEqual([0, ENTRIES + made]);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy whose target is taken meanwhile is refused, and only what came stays there', async () => {
  const storage = await withLargeFolder();
  const { usedBytes } = storage.usage(HOME);
  const copied = refusal(storage.relocate(HOME, '/large', '/new', COPY));
  await underWay();
  await storage.createFolder(HOME, '/new/below/7', false);
  expect(await copied).toBe('conflict/folder');
  await storage.tidy();
  expect(count(storage, '/new')).toBe(3);
  expect(storage.usage(HOME).usedBytes).toBe(usedBytes);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('what came to the target of a large move and went again costs it nothing', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  await storage.createFolder(HOME, '/new/below/7', false);
  await storage.remove(HOME, '/new');
  await moved;
  expect(count(storage, '/new')).toBe(ENTRIES);
  expect(await textAt(storage, '/new/below/7')).toBe('text');
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a folder that is deleted or moved away on its large move is not there to be moved', async () => {
  const storage = await withLargeFolder();
  const moved = refusal(storage.relocate(HOME, '/large', '/new', MOVE));
  await underWay();
  await storage.remove(HOME, '/large');
  expect(await moved).toBe('lookup/not_found');
  await storage.tidy();
  expect([count(storage, '/new'), count(storage, '/large')]).toEqual([0, 0]);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy beyond the limit is refused and gives its space back', async () => {
  const storage = await withLargeFolder({}, FILES * 6);
  const before = shown(storage);
  const { usedBytes } = storage.usage(HOME);
  expect(await refusal(storage.relocate(HOME, '/large', '/new', COPY))).toBe('write/insufficient_space');
  await storage.tidy();
  expect(shown(storage)).toEqual(before);
  expect(storage.usage(HOME).usedBytes).toBe(usedBytes);
  await storage.relocate(HOME, '/large', '/new', MOVE);
  await put(storage, '/small', 'xx');
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move that the end of the service cut off has not begun after the next start', async () => {
  const storage = await withLargeFolder();
  const before = shown(storage);
  const cut = refusal(storage.relocate(HOME, '/large', '/new', MOVE));
  await underWay();
  await storage.close();
  expect(await cut).toBe('the storage is closed');
  expectSound(storage.dataDirectory);
  const again = await opened({ ...STEPS, dataDirectory: storage.dataDirectory });
  expect(shown(again)).toEqual(before);
  await again.relocate(HOME, '/large', '/new', MOVE);
  expect([count(again, '/new'), count(again, '/large')]).toEqual([ENTRIES, 0]);
  await again.tidy();
  await again.close();
  expectSound(storage.dataDirectory);
});

test('a folder that goes to and fro shows no deletion where it is, and its files keep their ids', async () => {
  const storage = await withLargeFolder();
  const id = (path: string) => {
    const found = storage.stat(HOME, path, false);
    return found.kind === 'deleted' ? '' : found.id;
  };
  const before = id('/large/below/9');
  for (let round = 0; round < 3; round++) {
    await storage.relocate(HOME, '/large', '/new', MOVE);
    expect(id('/new/below/9')).toBe(before);
    expect(storage.stat(HOME, before, false)).toMatchObject({ pathDisplay: '/new/Below/9' });
    await storage.relocate(HOME, '/new', '/large', MOVE);
    expect(storage.stat(HOME, before, false)).toMatchObject({ pathDisplay: '/large/Below/9' });
    const live = new Set(pagesOf(storage).map(({ pathLower }) => pathLower));
    const gone = pagesOf(storage, DELETED_TOO).filter(({ kind }) => kind === 'deleted');
    expect(gone).toHaveLength(ENTRIES);
    expect(gone.filter(({ pathLower }) => live.has(pathLower))).toEqual([]);
    expect(storage.revisions(HOME, '/large/below/9', { by: 'path', limit: 100 }).deleted).toBe(false);
  }
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('many files moved together in one change are seen together, in steps', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: `/large/below/${index}`,
    to: `/New/${index}`,
  }));
  const { turns, result } = await during(storage.relocateTogether(HOME, pairs, MOVE), () => {
    expect([0, FILES + 1]).toContain(count(storage, '/new'));
    expect(count(storage, '/new') + count(storage, '/large')).toBeOneOf([ENTRIES, ENTRIES + 1]);
  });
  expect(turns).toBeGreaterThan(FILES / STEP_ROWS);
  expect(result.map(({ pathDisplay }) => pathDisplay)).toEqual(pairs.map(({ to }) => to));
  const back = pairs.map(({ from, to }) => ({ from: to, to: from }));
  await put(storage, '/large/below/59', 'taken');
  expect(await refusal(storage.relocateTogether(HOME, back, MOVE))).toBe('conflict/file');
  expect(count(storage, '/new')).toBe(FILES + 1);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a batch with a large folder in it does one entry after the other', async () => {
  const storage = await withLargeFolder();
  const outcomes = await storage.relocateAll(
    HOME,
    [
      { from: '/other', to: '/first' },
      { from: '/large', to: '/second' },
      { from: '/large', to: '/none' },
      { from: '/second', to: '/third' },
      { from: '/first', to: '/second' },
    ],
    MOVE,
  );
  expect(
    outcomes.map((outcome) => (outcome instanceof StorageError ? outcome.message : outcome.pathDisplay)),
  ).toEqual(['/first', '/second', 'lookup/not_found', '/third', '/second']);
  expect(count(storage, '/third')).toBe(ENTRIES);
});

test('a large folder removed for ever where it was before its move stays whole where it is', async () => {
  const storage = await withLargeFolder();
  await storage.relocate(HOME, '/large', '/new', MOVE);
  await storage.removeForever(HOME, '/large');
  await storage.relocate(HOME, '/new', '/newer', MOVE);
  await storage.tidy();
  expect(count(storage, '/newer')).toBe(ENTRIES);
  expect(await textAt(storage, '/newer/below/3')).toBe('text');
  await storage.removeForever(HOME, '/newer');
  await storage.tidy();
  expect(storage.usage(HOME).usedBytes).toBe(0);
  await storage.startSession(HOME, 'sequential', body('x'), true);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy leaves out a file that is removed for ever before its turn', async () => {
  const storage = await withLargeFolder();
  await put(storage, '/large/below/9', 'nobody else has this');
  const copied = storage.relocate(HOME, '/large', '/new', COPY);
  await underWay();
  await storage.removeForever(HOME, '/large/below/9');
  await copied;
  expect([count(storage, '/new'), count(storage, '/large')]).toEqual([ENTRIES - 1, ENTRIES - 1]);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('files that go together to one new folder are shown below it as its first file spells it', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: `/large/below/${index}`,
    to: index % 2 === 0 ? `/New/Sub/${index}` : `/new/${index % 3 === 0 ? 'sub' : 'Other'}/${index}`,
  }));
  const moved = await storage.relocateTogether(HOME, pairs, MOVE);
  const spelt = pairs.map(({ to }) => to.replace('/new/', '/New/').replace('/sub/', '/Sub/'));
  expect(moved.map(({ pathDisplay }) => pathDisplay)).toEqual(spelt);
  expect(shown(storage, ALL).filter((entry) => /new/i.test(entry))).toEqual(
    ['folder /New', 'folder /New/Other', 'folder /New/Sub', ...spelt.map((path) => `file ${path}`)].sort(),
  );
});

test('many copies of one file can be made together', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: '/large/below/0',
    to: `/new/${index}`,
  }));
  expect(await storage.relocateTogether(HOME, pairs, COPY)).toHaveLength(FILES);
  expect(count(storage, '/new')).toBe(FILES + 1);
});

test('many moves together of which one needs another are refused, and a few are made', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: index === 0 ? '/large/below/0' : `/new/${index - 1}`,
    to: `/new/${index}`,
  }));
  const before = shown(storage);
  expect(await refusal(storage.relocateTogether(HOME, pairs, MOVE))).toBe(
    'relocation/duplicated_or_nested_paths',
  );
  const nested = [
    { from: '/large', to: '/new' },
    { from: '/other', to: '/new/other' },
  ];
  for (const options of [MOVE, COPY])
    expect(await refusal(storage.relocateTogether(HOME, nested, options))).toBe(
      'relocation/duplicated_or_nested_paths',
    );
  expect(shown(storage)).toEqual(before);
  await storage.relocateTogether(HOME, pairs.slice(0, STEP_ROWS), MOVE);
  expect(count(storage, `/new/${STEP_ROWS - 1}`)).toBe(1);
});

test('a large move that waits half a minute behind another is refused, and the other is made', async () => {
  const clock = new ManualClock();
  const storage = await withLargeFolder({ clock, commitWaitMs: Number.POSITIVE_INFINITY });
  await storage.relocate(HOME, '/large', '/second', COPY);
  const first = storage.relocate(HOME, '/large', '/new', MOVE);
  const second = refusal(storage.relocate(HOME, '/second', '/third', MOVE));
  await underWay();
  await clock.advance(30_000);
  expect(await second).toBe('write/too_many_write_operations');
  await first;
  expect([count(storage, '/new'), count(storage, '/second')]).toEqual([ENTRIES, ENTRIES]);
  await storage.relocate(HOME, '/second', '/third', MOVE);
  expect(count(storage, '/third')).toBe(ENTRIES);
});

test('a large copy that takes minutes is made at its second try', async () => {
  const clock = new ManualClock();
  const storage = await withLargeFolder({ clock, commitWaitMs: Number.POSITIVE_INFINITY });
  const copied = storage.relocate(HOME, '/large', '/new', COPY);
  await during(copied, () => clock.advance(20_000));
  expect(count(storage, '/new')).toBe(ENTRIES);
});

test('a deletion that a file removed for ever has left is gone though a large copy was on its way there', async () => {
  const storage = await withLargeFolder();
  await put(storage, '/place/0', 'moved away');
  await storage.relocate(HOME, '/place/0', '/away', MOVE);
  await storage.remove(HOME, '/place');
  const copied = refusal(storage.relocate(HOME, '/large/below', '/place', COPY));
  await underWay();
  await storage.removeForever(HOME, '/away');
  await storage.createFolder(HOME, '/place', false);
  expect(await copied).toBe('conflict/folder');
  await storage.tidy();
  expect(await refusal(() => storage.stat(HOME, '/place/0', true))).toBe('lookup/not_found');
});

test('a folder of a few entries among many that were removed before is moved in steps', async () => {
  const storage = await withLargeFolder();
  for (let round = 0; round < 25; round++)
    await storage.relocate(HOME, '/large/below', `/large/copy/${round}`, COPY);
  const { result } = await during(storage.relocate(HOME, '/large/below', '/kept', MOVE), () => undefined);
  expect(result.kind).toBe('folder');
  await storage.remove(HOME, '/large/copy');
  const { turns } = await during(storage.relocate(HOME, '/large', '/new', MOVE), () => undefined);
  expect(turns).toBeGreaterThan(3);
  expect(count(storage, '/new')).toBe(1);
});
