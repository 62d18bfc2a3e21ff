import { expect, test } from 'vitest';
import { withInnerNamespaces } from '../../../src/service/storage/inner-namespaces.ts';
import {
  type Outcome,
  type Storage,
  StorageError,
  type Stored,
} from '../../../src/service/storage/storage.ts';
import { HOME, opened, put } from './opened.ts';

const INNER = 'inner';

/** Returns the storage with a namespace that is the folder `/Ann`. */
function withAnn(storage: Storage): Storage {
  return withInnerNamespaces(storage, async (namespace) =>
    namespace === INNER ? { outer: HOME, folder: '/Ann' } : undefined,
  );
}

function shown(outcome: Outcome<Stored>): string {
  return outcome instanceof StorageError ? outcome.message : outcome.pathDisplay;
}

test('a batch by ids in a namespace that is a folder reaches the items in the folder and none outside', async () => {
  const storage = await opened();
  const [mine, theirs] = [await put(storage, '/Ann/mine', '1'), await put(storage, '/Bob/theirs', '2')];
  await put(storage, '/Ann/other', '3');
  const removed = await withAnn(storage).removeAll(INNER, [
    { address: mine.id },
    { address: theirs.id },
    { address: '/other' },
    { address: '/none' },
  ]);
  expect(removed.map(shown)).toEqual(['/mine', 'lookup/not_found', '/other', 'lookup/not_found']);
  expect(await storage.stat(HOME, '/Bob/theirs', false)).toEqual(theirs);
});

test('lookups by ids in a namespace that is a folder find nothing outside of the folder', async () => {
  const storage = await opened();
  const [mine, theirs] = [await put(storage, '/Ann/a/mine', '1'), await put(storage, '/Bob/theirs', '2')];
  const inner = withAnn(storage);
  const found = await inner.statAll(INNER, [mine.id, theirs.id, '/a']);
  expect(found.map(shown)).toEqual(['/a/mine', 'lookup/not_found', '/a']);
  const above = await inner.statWithFolders(INNER, mine.id);
  expect(above.map(({ pathDisplay }) => pathDisplay)).toEqual(['/a/mine', '/a']);
  const all = await inner.listAll(INNER, '/a', 10);
  expect(all?.map(({ pathDisplay }) => pathDisplay)).toEqual(['/a', '/a/mine']);
});

test('a batch of 100 ids in a namespace that is a folder costs two calls of the storage', async () => {
  const storage = await opened();
  const files = await Promise.all(
    Array.from({ length: 100 }, (_, index) => put(storage, `/Ann/${index}`, 'x')),
  );
  let calls = 0;
  const counted = new Proxy(storage, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...given: unknown[]) => {
        calls++;
        return Reflect.apply(method, target, given);
      };
    },
  });
  const inner = withAnn(counted);
  const removed = await inner.removeAll(
    INNER,
    files.map(({ id: address }) => ({ address })),
  );
  expect([removed.length, calls]).toEqual([100, 2]);
});
