import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Watchers } from '../../../src/service/storage/feed/watchers.ts';

/** Adds a watcher that records its notifications. */
function watch(watchers: Watchers, key: string, recursive: boolean, ns = 1) {
  const woken: boolean[] = [];
  const forget = watchers.add({ ns, key, recursive }, (changed) => woken.push(changed));
  return { key, recursive, ns, woken, forget };
}

const names = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 4 });
const key = names.map((parts) => parts.map((name) => `/${name}`).join(''));

/** Returns whether a change concerns a watcher of a folder. */
function concerns(change: { key: string; tree: boolean }, folder: string, recursive: boolean): boolean {
  const parent = change.key.slice(0, Math.max(0, change.key.lastIndexOf('/')));
  if (change.key === folder || (change.key !== '' && parent === folder)) return true;
  if (change.tree && folder.startsWith(`${change.key}/`)) return true;
  return recursive && change.key.startsWith(`${folder}/`);
}

test('a change notifies exactly the watchers of its folder', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ key, recursive: fc.boolean(), ns: fc.constantFrom(1, 2), leaves: fc.boolean() })),
      fc.array(fc.record({ key, tree: fc.boolean() }), { minLength: 1, maxLength: 3 }),
      (scopes, changes) => {
        const watchers = new Watchers();
        const all = scopes.map((scope) => ({
          ...watch(watchers, scope.key, scope.recursive, scope.ns),
          leaves: scope.leaves,
        }));
        for (const one of all) if (one.leaves) one.forget();
        watchers.notify(changes.map((change) => ({ ...change, ns: 1 })));
        for (const { key: at, recursive, ns, woken, leaves } of all) {
          const isConcerned = ns === 1 && changes.some((change) => concerns(change, at, recursive));
          expect(woken).toEqual(isConcerned && !leaves ? [true] : []);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test('a thousand changes of one commit notify each watcher once', () => {
  const watchers = new Watchers();
  const waiting = [watch(watchers, '', true), watch(watchers, '/folder', false)];
  const changes = Array.from({ length: 1000 }, (_, index) => ({
    ns: 1,
    key: `/folder/${index}`,
    tree: true,
  }));
  watchers.notify(changes);
  expect(waiting.map(({ woken }) => woken)).toEqual([[true], [true]]);
});

test('a watcher added during a notification waits for the next change', () => {
  const watchers = new Watchers();
  let later: ReturnType<typeof watch> | undefined;
  const forget = watchers.add({ ns: 1, key: '/a', recursive: false }, () => {
    later = watch(watchers, '/a', false);
  });
  watchers.notify([{ ns: 1, key: '/a/x', tree: false }]);
  forget();
  expect(later?.woken).toEqual([]);
  watchers.notify([{ ns: 1, key: '/a/x', tree: false }]);
  expect(later?.woken).toEqual([true]);
});

test('endAll notifies each watcher of no change', () => {
  const watchers = new Watchers();
  const waiting = [watch(watchers, '', false), watch(watchers, '/a/b', true, 2), watch(watchers, '/a', true)];
  watchers.endAll();
  expect(waiting.map(({ woken }) => woken)).toEqual([[false], [false], [false]]);
});
