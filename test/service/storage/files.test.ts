import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { body, bytesOf, commit, HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

test('a file reads as it was written, also after a restart', async () => {
  const storage = await opened();
  const bytes = randomBytes(9_711_423);
  const file = await put(storage, '/Photos/Åse.jpg', bytes.subarray(0, 5_000_000), bytes.subarray(5_000_000));
  expect(file).toMatchObject({
    name: 'Åse.jpg',
    pathLower: '/photos/åse.jpg',
    pathDisplay: '/Photos/Åse.jpg',
    sizeBytes: 9_711_423,
  });
  expect((await bytesOf(storage.read(HOME, file, undefined))).equals(bytes)).toBe(true);
  await storage.close();
  const again = await openStorage({
    dataDirectory: storage.dataDirectory,
    clock: systemClock,
    log: silentLog,
  });
  expect(await again.stat(HOME, '/photos/ÅSE.JPG', false)).toEqual(file);
  expect(
    (await bytesOf(again.read(HOME, file, { start: 4_194_300, end: 8_388_610 }))).equals(
      bytes.subarray(4_194_300, 8_388_610),
    ),
  ).toBe(true);
  await again.close();
});

test('folders list their entries, move and are removed', async () => {
  const storage = await opened();
  await put(storage, '/a/b.txt', 'b');
  await put(storage, '/a/c/d.txt', 'd');
  await storage.createFolder(HOME, '/a/e', false);
  const page = await storage.list(OWNER, { path: '/A', recursive: false, includeDeleted: false }, 500);
  expect(page.entries.map((entry) => `${entry.kind} ${entry.pathDisplay}`)).toEqual([
    'file /a/b.txt',
    'folder /a/c',
    'folder /a/e',
  ]);
  expect(page.hasMore).toBe(false);
  const all = await storage.list(OWNER, { path: '', recursive: true, includeDeleted: false }, 2);
  expect(all.hasMore).toBe(true);
  await storage.relocate(HOME, '/a/c', '/z', { copy: false, autorename: false });
  await storage.remove(HOME, '/a');
  expect(await refusal(() => storage.stat(HOME, '/a/b.txt', false))).toBe('lookup/not_found');
  expect(await textAt(storage, '/z/D.txt')).toBe('d');
  expect(await refusal(storage.upload(HOME, commit('/z'), body('x')))).toBe('conflict/folder');
});
