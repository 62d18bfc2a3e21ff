import { expect, test } from 'vitest';
import { matchesOf } from '../../../../src/service/search/search.ts';
import type { Storage, StoredFile } from '../../../../src/service/storage/storage.ts';

const OWNER = { namespace: '1', account: 'dbid:ann', app: 'app' };
const PAGE = 2000;

/** Files in pages, as the store lists them; `nameOf` gives the names. */
function storageOf(count: number, nameOf: (index: number) => string): Storage {
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
  const pageFrom = (start: number) => ({
    entries: Array.from({ length: Math.min(PAGE, count - start) }, (_, index) => file(start + index)),
    cursor: String(start + PAGE),
    hasMore: start + PAGE < count,
  });
  return {
    list: () => pageFrom(0),
    listContinue: (_: unknown, cursor: string) => pageFrom(Number(cursor)),
  } as unknown as Storage; // all that a search asks of it
}

const SEARCH = { query: 'note', path: '', status: 'active', extensions: [], categories: [] } as const;

test('of more matches than are told the best are, wherever they come in the listing', async () => {
  const storage = storageOf(50_001, (index) => (index % 25_000 === 0 ? 'note' : 'my note'));
  const found = await matchesOf(storage, OWNER, { ...SEARCH, order: 'relevance' });
  expect(found.length).toBe(10_000);
  expect(found.slice(0, 4).map(({ name, pathLower }) => [name, pathLower.slice(1, 7)])).toEqual([
    ['note', '000000'],
    ['note', '025000'],
    ['note', '050000'],
    ['my note', '000001'],
  ]);
});

test('in the order of time they are the newest', async () => {
  const storage = storageOf(50_001, () => 'note');
  const found = await matchesOf(storage, OWNER, { ...SEARCH, order: 'last_modified_time' });
  const numbers = found.map(({ pathLower }) => Number(pathLower.slice(1, 7)));
  expect([numbers.length, numbers[0], numbers.at(-1)]).toEqual([10_000, 50_000, 40_001]);
});
