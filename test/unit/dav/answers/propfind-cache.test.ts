import { expect, test } from 'vitest';
import { PropfindCache } from '../../../../src/dav/answers/propfind-cache.ts';
import { PropertySelection } from '../../../../src/dav/properties/property-selection.ts';
import type { FolderEntry, Listing } from '../../../../src/drive/files.ts';
import { pathOf } from '../../../../src/util/path.ts';

const MIB = 1024 * 1024;

const folder = (name: string): FolderEntry => ({ kind: 'folder', id: name, path: pathOf([name]), name });
const listing = (name: string): Listing => ({ folder: folder(name), children: [] });
const newSelection = () =>
  new PropertySelection(
    { kind: 'prop', names: [] },
    { client: { allprop: 'full', reportsQuota: true }, minimal: false },
  );

test('a row is rendered once per entry value and selection', () => {
  const cache = new PropfindCache();
  const selection = newSelection();
  const entry = folder('a');
  expect(cache.row(selection, entry, () => 'first')).toBe('first');
  expect(cache.row(selection, entry, () => 'second')).toBe('first');
  expect(cache.row(selection, { ...entry }, () => 'third')).toBe('third');
  expect(cache.row(newSelection(), entry, () => 'fourth')).toBe('fourth');
});

test('an answer is cached by listing, selection, href and version', () => {
  const cache = new PropfindCache();
  const selection = newSelection();
  const one = listing('a');
  const key = cache.answerKey(one, selection, '/a/', 1);
  cache.keepAnswer(key, Buffer.from('kept'));
  expect(cache.answer(cache.answerKey(one, selection, '/a/', 1))?.toString()).toBe('kept');
  for (const other of [
    cache.answerKey({ ...one }, selection, '/a/', 1),
    cache.answerKey(one, newSelection(), '/a/', 1),
    cache.answerKey(one, selection, '/A/', 1),
    cache.answerKey(one, selection, '/a/', 2),
    cache.answerKey(one, selection, '/a/', undefined),
  ])
    expect(cache.answer(other)).toBeUndefined();
});

test('PropfindCache drops rows and answers beyond its limits', () => {
  const cache = new PropfindCache();
  const selection = newSelection();
  const first = folder('first');
  let made = 0;
  const row = () => {
    made += 1;
    return 'x'.repeat(MIB);
  };
  for (let index = 0; index < 30; index += 1)
    cache.row(selection, index === 0 ? first : folder(`${index}`), row);
  cache.row(selection, first, row);
  expect(made).toBe(31);

  const keys = Array.from({ length: 10 }, (_, index) =>
    cache.answerKey(listing(`${index}`), selection, '/', 1),
  );
  for (const key of keys) cache.keepAnswer(key, Buffer.alloc(4 * MIB));
  expect(keys.filter((key) => cache.answer(key)).length).toBeLessThanOrEqual(8);
  expect(cache.answer(keys.at(-1) ?? '')).toBeDefined();
});
