import { expect, test } from 'vitest';
import { RowCache } from '../../../../src/dav/answers/propfind-rows.ts';
import { AnswerCache } from '../../../../src/dav/methods/propfind.ts';
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
  const cache = new RowCache();
  const selection = newSelection();
  const entry = folder('a');
  expect(cache.row(selection, entry, () => 'first')).toBe('first');
  expect(cache.row(selection, entry, () => 'second')).toBe('first');
  expect(cache.row(selection, { ...entry }, () => 'third')).toBe('third');
  expect(cache.row(newSelection(), entry, () => 'fourth')).toBe('fourth');
});

test('an answer is cached by listing, selection, href and version', () => {
  const cache = new AnswerCache();
  const selection = newSelection();
  const one = listing('a');
  const key = cache.key(one, selection, '/a/', 1);
  cache.set(key, Buffer.from('kept'));
  expect(cache.get(cache.key(one, selection, '/a/', 1))?.toString()).toBe('kept');
  for (const other of [
    cache.key({ ...one }, selection, '/a/', 1),
    cache.key(one, newSelection(), '/a/', 1),
    cache.key(one, selection, '/A/', 1),
    cache.key(one, selection, '/a/', 2),
    cache.key(one, selection, '/a/', undefined),
  ])
    expect(cache.get(other)).toBeUndefined();
});

test('RowCache drops all rows when they exceed its limit', () => {
  const cache = new RowCache();
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
});

test('AnswerCache drops the oldest answers beyond its limit', () => {
  const cache = new AnswerCache();
  const selection = newSelection();
  const keys = Array.from({ length: 10 }, (_, index) => cache.key(listing(`${index}`), selection, '/', 1));
  for (const key of keys) cache.set(key, Buffer.alloc(4 * MIB));
  expect(keys.filter((key) => cache.get(key)).length).toBeLessThanOrEqual(8);
  expect(cache.get(keys.at(-1) ?? '')).toBeDefined();
});
