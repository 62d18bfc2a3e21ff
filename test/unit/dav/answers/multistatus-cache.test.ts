import { expect, test } from 'vitest';
import { MultistatusCache } from '../../../../src/dav/answers/multistatus-cache.ts';
import { PropertySet } from '../../../../src/dav/properties/set.ts';
import type { FolderEntry, Listing } from '../../../../src/drive/files.ts';
import { pathOf } from '../../../../src/util/path.ts';

const MIB = 1024 * 1024;

const folder = (name: string): FolderEntry => ({ kind: 'folder', id: name, path: pathOf([name]), name });
const listing = (name: string): Listing => ({ folder: folder(name), children: [] });
const propertySet = () =>
  new PropertySet(
    { kind: 'prop', names: [] },
    { client: { allprop: 'full', reportsQuota: true }, minimal: false },
  );

test('a row is made once for an entry, and again for another value of it or another kind of PROPFIND', () => {
  const cache = new MultistatusCache();
  const set = propertySet();
  const entry = folder('a');
  expect(cache.row(set, entry, () => 'first')).toBe('first');
  expect(cache.row(set, entry, () => 'second')).toBe('first');
  expect(cache.row(set, { ...entry }, () => 'third')).toBe('third');
  expect(cache.row(propertySet(), entry, () => 'fourth')).toBe('fourth');
});

test('an answer is known by listing, kind, place and version', () => {
  const cache = new MultistatusCache();
  const set = propertySet();
  const one = listing('a');
  const key = cache.key(one, set, '/a/', 1);
  cache.keepAnswer(key, Buffer.from('kept'));
  expect(cache.answer(cache.key(one, set, '/a/', 1))?.toString()).toBe('kept');
  for (const other of [
    cache.key({ ...one }, set, '/a/', 1),
    cache.key(one, propertySet(), '/a/', 1),
    cache.key(one, set, '/A/', 1),
    cache.key(one, set, '/a/', 2),
    cache.key(one, set, '/a/', undefined),
  ])
    expect(cache.answer(other)).toBeUndefined();
});

test('what is kept has a limit', () => {
  const cache = new MultistatusCache();
  const set = propertySet();
  const first = folder('first');
  let made = 0;
  const row = () => {
    made += 1;
    return 'x'.repeat(MIB);
  };
  for (let index = 0; index < 30; index += 1) cache.row(set, index === 0 ? first : folder(`${index}`), row);
  cache.row(set, first, row);
  expect(made).toBe(31);

  const keys = Array.from({ length: 10 }, (_, index) => cache.key(listing(`${index}`), set, '/', 1));
  for (const key of keys) cache.keepAnswer(key, Buffer.alloc(4 * MIB));
  expect(keys.filter((key) => cache.answer(key)).length).toBeLessThanOrEqual(8);
  expect(cache.answer(keys.at(-1) ?? '')).toBeDefined();
});
