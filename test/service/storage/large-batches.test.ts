import { expect, test } from 'vitest';
import { StorageError } from '../../../src/service/storage/storage.ts';
import { expectSound } from './invariants.ts';
import {
  ALL,
  COPY,
  count,
  during,
  ENTRIES,
  FILES,
  MOVE,
  STEP_ROWS,
  shown,
  withLargeFolder,
} from './large-folder.ts';
import { HOME, put, refusal } from './opened.ts';

test('relocateTogether of many files shows all of them at once or none', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: `/large/below/${index}`,
    to: `/New/${index}`,
  }));
  const { turns, result } = await during(storage.relocateTogether(HOME, pairs, MOVE), async () => {
    expect([0, FILES + 1]).toContain(await count(storage, '/new'));
    expect((await count(storage, '/new')) + (await count(storage, '/large'))).toBeOneOf([
      ENTRIES,
      ENTRIES + 1,
    ]);
  });
  expect(turns).toBeGreaterThan(FILES / STEP_ROWS);
  expect(result.map(({ pathDisplay }) => pathDisplay)).toEqual(pairs.map(({ to }) => to));
  const back = pairs.map(({ from, to }) => ({ from: to, to: from }));
  await put(storage, '/large/below/59', 'taken');
  expect(await refusal(storage.relocateTogether(HOME, back, MOVE))).toBe('conflict/file');
  expect(await count(storage, '/new')).toBe(FILES + 1);
  await storage.tidy();
  await storage.close();
  expectSound(storage.dataDirectory);
});

test('relocateAll with a large folder moves its entries in order', async () => {
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
  expect(await count(storage, '/third')).toBe(ENTRIES);
});

test('relocateTogether into a new folder spells it as its first file does', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: `/large/below/${index}`,
    to: index % 2 === 0 ? `/New/Sub/${index}` : `/new/${index % 3 === 0 ? 'sub' : 'Other'}/${index}`,
  }));
  const moved = await storage.relocateTogether(HOME, pairs, MOVE);
  const spelt = pairs.map(({ to }) => to.replace('/new/', '/New/').replace('/sub/', '/Sub/'));
  expect(moved.map(({ pathDisplay }) => pathDisplay)).toEqual(spelt);
  expect((await shown(storage, ALL)).filter((entry) => /new/i.test(entry))).toEqual(
    ['folder /New', 'folder /New/Other', 'folder /New/Sub', ...spelt.map((path) => `file ${path}`)].sort(),
  );
});

test('relocateTogether makes many copies of one file', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: '/large/below/0',
    to: `/new/${index}`,
  }));
  expect(await storage.relocateTogether(HOME, pairs, COPY)).toHaveLength(FILES);
  expect(await count(storage, '/new')).toBe(FILES + 1);
});

test('relocateTogether refuses many moves that depend on each other, and makes a few', async () => {
  const storage = await withLargeFolder();
  const pairs = Array.from({ length: FILES }, (_, index) => ({
    from: index === 0 ? '/large/below/0' : `/new/${index - 1}`,
    to: `/new/${index}`,
  }));
  const before = await shown(storage);
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
  expect(await shown(storage)).toEqual(before);
  await storage.relocateTogether(HOME, pairs.slice(0, STEP_ROWS), MOVE);
  expect(await count(storage, `/new/${STEP_ROWS - 1}`)).toBe(1);
});
