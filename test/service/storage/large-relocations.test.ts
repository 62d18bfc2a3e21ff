import { expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import {
  ALL,
  COPY,
  count,
  DELETED_TOO,
  during,
  ENTRIES,
  FILES,
  found,
  MOVE,
  pagesOf,
  STEP_ROWS,
  STEPS,
  shown,
  underWay,
  withLargeFolder,
} from './large-folder.ts';
import { body, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

test.each([
  ['move', MOVE],
  ['copy', COPY],
])('a large %s lets other calls run, and no call sees a part of it', async (_, options) => {
  const storage = await withLargeFolder();
  const { usedBytes } = await storage.usage(HOME);
  const cursor = await storage.latestCursor(OWNER, ALL);
  const before = await shown(storage);
  const { result, turns } = await during(
    storage.relocate(HOME, '/large', '/New/Place', options),
    async () => {
      const now = await shown(storage);
      if ((await count(storage, '/new')) === 0) {
        expect(now).toEqual(before);
        expect((await storage.listContinue(OWNER, cursor)).entries).toEqual([]);
        expect((await storage.listContinue(OWNER, cursor)).hasMore).toBe(false);
        expect(await found(storage, '59')).toBe(1);
        expect(await storage.usage(HOME)).toMatchObject({ usedBytes });
        expect(
          (await storage.revisions(HOME, '/large/below/0', { by: 'path', limit: 9 })).entries,
        ).toHaveLength(1);
      } else {
        expect([await count(storage, '/new/place'), await count(storage, '/large')]).toEqual([
          ENTRIES,
          options.copy ? ENTRIES : 0,
        ]);
        expect(await found(storage, '59')).toBe(options.copy ? 2 : 1);
      }
    },
  );
  expect(turns).toBeGreaterThan(ENTRIES / STEP_ROWS);
  expect(result).toMatchObject({ kind: 'folder', pathDisplay: '/New/Place' });
  expect((await storage.usage(HOME)).usedBytes).toBe(usedBytes * (options.copy ? 2 : 1));
  expect(
    (await storage.listContinue(OWNER, cursor)).entries.filter(({ kind }) => kind !== 'deleted'),
  ).toHaveLength(ENTRIES + 1);
  expect(await textAt(storage, '/new/place/below/59')).toBe('text');
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('createFolder succeeds while a large move is running', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  const made = storage.createFolder(HOME, '/other/folder', false);
  expect(await Promise.race([moved.then(() => 'moved'), made.then(() => 'made')])).toBe('made');
  expect([await count(storage, '/new'), await count(storage, '/large')]).toEqual([0, ENTRIES]);
  await moved;
});

test('a large move takes along a folder that arrives meanwhile, and leaves out a file that is removed meanwhile', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  // In one transaction, so that the move restarts only once.
  await Promise.all([
    storage.createFolder(HOME, '/large/late', false),
    storage.remove(HOME, '/large/below/5'),
    storage.relocate(HOME, '/large/below/6', '/large/below/six', MOVE),
  ]);
  await moved;
  expect((await storage.stat(HOME, '/new/late', false)).kind).toBe('folder');
  expect(await textAt(storage, '/new/below/six')).toBe('text');
  expect([await count(storage, '/new'), await count(storage, '/large')]).toEqual([ENTRIES, 0]);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move of a folder that keeps changing is refused and changes nothing', async () => {
  const storage = await withLargeFolder();
  let made = 0;
  const moved = during(storage.relocate(HOME, '/large', '/new', MOVE), async () => {
    await storage.createFolder(HOME, '/large/busy', true);
    made++;
  });
  expect(await refusal(moved)).toBe('write/too_many_write_operations');
  await storage.tidy();
  expect([await count(storage, '/new'), await count(storage, '/large')]).toEqual([0, ENTRIES + made]);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy whose target is taken meanwhile is refused and leaves only that entry', async () => {
  const storage = await withLargeFolder();
  const { usedBytes } = await storage.usage(HOME);
  const copied = refusal(storage.relocate(HOME, '/large', '/new', COPY));
  await underWay();
  await storage.createFolder(HOME, '/new/below/7', false);
  expect(await copied).toBe('conflict/folder');
  await storage.tidy();
  expect(await count(storage, '/new')).toBe(3);
  expect((await storage.usage(HOME)).usedBytes).toBe(usedBytes);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move is not refused for an entry that came to its target and was removed meanwhile', async () => {
  const storage = await withLargeFolder();
  const moved = storage.relocate(HOME, '/large', '/new', MOVE);
  await underWay();
  await storage.createFolder(HOME, '/new/below/7', false);
  await storage.remove(HOME, '/new');
  await moved;
  expect(await count(storage, '/new')).toBe(ENTRIES);
  expect(await textAt(storage, '/new/below/7')).toBe('text');
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move of a folder that is deleted meanwhile answers not_found', async () => {
  const storage = await withLargeFolder();
  const moved = refusal(storage.relocate(HOME, '/large', '/new', MOVE));
  await underWay();
  await storage.remove(HOME, '/large');
  expect(await moved).toBe('lookup/not_found');
  await storage.tidy();
  expect([await count(storage, '/new'), await count(storage, '/large')]).toEqual([0, 0]);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy beyond the limit is refused and frees its space', async () => {
  const storage = await withLargeFolder({}, FILES * 6);
  const before = await shown(storage);
  const { usedBytes } = await storage.usage(HOME);
  expect(await refusal(storage.relocate(HOME, '/large', '/new', COPY))).toBe('write/insufficient_space');
  await storage.tidy();
  expect(await shown(storage)).toEqual(before);
  expect((await storage.usage(HOME)).usedBytes).toBe(usedBytes);
  await storage.relocate(HOME, '/large', '/new', MOVE);
  await put(storage, '/small', 'xx');
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move that a close interrupts has not begun after the next start', async () => {
  const storage = await withLargeFolder();
  const before = await shown(storage);
  const cut = refusal(storage.relocate(HOME, '/large', '/new', MOVE));
  await underWay();
  await storage.close();
  expect(await cut).toBe('the storage is closed');
  expectSound(storage.dataDirectory);
  const again = await opened({ ...STEPS, dataDirectory: storage.dataDirectory });
  expect(await shown(again)).toEqual(before);
  await again.relocate(HOME, '/large', '/new', MOVE);
  expect([await count(again, '/new'), await count(again, '/large')]).toEqual([ENTRIES, 0]);
  await again.tidy();
  await again.close();
  expectSound(storage.dataDirectory);
});

test('a folder moved back and forth has no deletion at its path, and its files keep their ids', async () => {
  const storage = await withLargeFolder();
  const id = async (path: string) => {
    const found = await storage.stat(HOME, path, false);
    return found.kind === 'deleted' ? '' : found.id;
  };
  const before = await id('/large/below/9');
  for (let round = 0; round < 3; round++) {
    await storage.relocate(HOME, '/large', '/new', MOVE);
    expect(await id('/new/below/9')).toBe(before);
    expect(await storage.stat(HOME, before, false)).toMatchObject({ pathDisplay: '/new/Below/9' });
    await storage.relocate(HOME, '/new', '/large', MOVE);
    expect(await storage.stat(HOME, before, false)).toMatchObject({ pathDisplay: '/large/Below/9' });
    const live = new Set((await pagesOf(storage)).map(({ pathLower }) => pathLower));
    const gone = (await pagesOf(storage, DELETED_TOO)).filter(({ kind }) => kind === 'deleted');
    expect(gone).toHaveLength(ENTRIES);
    expect(gone.filter(({ pathLower }) => live.has(pathLower))).toEqual([]);
    expect((await storage.revisions(HOME, '/large/below/9', { by: 'path', limit: 100 })).deleted).toBe(false);
  }
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('removeForever of the old path of a moved large folder keeps the folder', async () => {
  const storage = await withLargeFolder();
  await storage.relocate(HOME, '/large', '/new', MOVE);
  await storage.removeForever(HOME, '/large');
  await storage.relocate(HOME, '/new', '/newer', MOVE);
  await storage.tidy();
  expect(await count(storage, '/newer')).toBe(ENTRIES);
  expect(await textAt(storage, '/newer/below/3')).toBe('text');
  await storage.removeForever(HOME, '/newer');
  await storage.tidy();
  expect((await storage.usage(HOME)).usedBytes).toBe(0);
  await storage.startSession(HOME, 'sequential', body('x'), true);
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large copy leaves out a file that is removed forever meanwhile', async () => {
  const storage = await withLargeFolder();
  await put(storage, '/large/below/9', 'nobody else has this');
  const copied = storage.relocate(HOME, '/large', '/new', COPY);
  await underWay();
  await storage.removeForever(HOME, '/large/below/9');
  await copied;
  expect([await count(storage, '/new'), await count(storage, '/large')]).toEqual([ENTRIES - 1, ENTRIES - 1]);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('a large move that waits 30 s behind another is refused, and the other succeeds', async () => {
  const clock = new ManualClock();
  const storage = await withLargeFolder({ clock, commitWaitMs: Number.POSITIVE_INFINITY });
  await storage.relocate(HOME, '/large', '/second', COPY);
  const first = storage.relocate(HOME, '/large', '/new', MOVE);
  const second = refusal(storage.relocate(HOME, '/second', '/third', MOVE));
  await underWay();
  await clock.advance(30_000);
  expect(await second).toBe('write/too_many_write_operations');
  await first;
  expect([await count(storage, '/new'), await count(storage, '/second')]).toEqual([ENTRIES, ENTRIES]);
  await storage.relocate(HOME, '/second', '/third', MOVE);
  expect(await count(storage, '/third')).toBe(ENTRIES);
});

test('a large copy that takes longer than the minute of its first attempt succeeds', async () => {
  const clock = new ManualClock();
  const storage = await withLargeFolder({ clock, commitWaitMs: Number.POSITIVE_INFINITY });
  const copied = storage.relocate(HOME, '/large', '/new', COPY);
  const { turns } = await during(copied, () => clock.advance(20_000));
  expect(turns * 20_000).toBeGreaterThan(60_000);
  expect(await count(storage, '/new')).toBe(ENTRIES);
});

test('the deletion left by a file removed forever is gone after a refused large copy to its folder', async () => {
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

test('a folder with few entries among many removed rows is moved in steps', async () => {
  const storage = await withLargeFolder();
  for (let round = 0; round < 25; round++)
    await storage.relocate(HOME, '/large/below', `/large/copy/${round}`, COPY);
  const { result } = await during(storage.relocate(HOME, '/large/below', '/kept', MOVE), () => undefined);
  expect(result.kind).toBe('folder');
  await storage.remove(HOME, '/large/copy');
  const { turns } = await during(storage.relocate(HOME, '/large', '/new', MOVE), () => undefined);
  expect(turns).toBeGreaterThan(3);
  expect(await count(storage, '/new')).toBe(1);
});
