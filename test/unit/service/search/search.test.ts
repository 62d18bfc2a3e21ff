import { expect, test } from 'vitest';
import { matchesOf } from '../../../../src/service/search/search.ts';
import type { NameFilter, Storage, StoredFile } from '../../../../src/service/storage/storage.ts';

const PIECE = 2000;

/** Returns a storage with `count` files named by `nameOf`, which finds them newest first. */
function storageOf(count: number, nameOf: (index: number) => string): Storage & { pieces: number } {
  const file = (index: number): StoredFile => ({
    kind: 'file',
    id: `id:${index}`,
    name: nameOf(index),
    pathLower: `/${String(index).padStart(6, '0')}/${nameOf(index)}`,
    pathDisplay: `/${String(index).padStart(6, '0')}/${nameOf(index)}`,
    rev: '0123456789',
    sizeBytes: 1,
    contentHash: '0'.repeat(64),
    clientModifiedMs: 0,
    serverModifiedMs: index * 1000,
  });
  const storage = {
    pieces: 0,
    countNamed: async () => count,
    countBelow: async () => count,
    async *findNames(_: string, __: unknown, ___: unknown, { matches }: NameFilter) {
      for (let start = 0; start < count; start += PIECE) {
        storage.pieces++;
        const indexes = Array.from(
          { length: Math.min(PIECE, count - start) },
          (_, index) => count - 1 - start - index,
        );
        yield indexes.filter((index) => matches(nameOf(index))).map(file);
      }
    },
  };
  return storage as unknown as Storage & { pieces: number }; // only what a search uses
}

const never = new AbortController().signal;

const SEARCH = { query: 'note', path: '', status: 'active', extensions: [], categories: [] } as const;

test('a search by relevance returns the 10,000 best matches of 50,001', async () => {
  const storage = storageOf(50_001, (index) => (index % 25_000 === 0 ? 'note' : 'my note'));
  const found = await matchesOf(storage, '1', { ...SEARCH, order: 'relevance' }, never);
  expect(found.length).toBe(10_000);
  expect(found.slice(0, 4).map(({ name, pathLower }) => [name, pathLower.slice(1, 7)])).toEqual([
    ['note', '000000'],
    ['note', '025000'],
    ['note', '050000'],
    ['my note', '040001'],
  ]);
});

test('a search by modification time returns the 10,000 newest matches of 50,001', async () => {
  const storage = storageOf(50_001, () => 'note');
  const found = await matchesOf(storage, '1', { ...SEARCH, order: 'last_modified_time' }, never);
  const numbers = found.map(({ pathLower }) => Number(pathLower.slice(1, 7)));
  expect([numbers.length, numbers[0], numbers.at(-1)]).toEqual([10_000, 50_000, 40_001]);
});

test('a search stops when its client leaves', async () => {
  const storage = storageOf(50_001, () => 'note');
  const client = new AbortController();
  const search = matchesOf(storage, '1', { ...SEARCH, order: 'last_modified_time' }, client.signal);
  client.abort(new Error('the client went away'));
  await expect(search).rejects.toThrow('the client went away');
  expect(storage.pieces).toBe(1);
});
