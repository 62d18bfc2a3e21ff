import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isKeyWithin, KeyTree } from '../../../src/util/path.ts';

const key = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 4 }).map((names) => `/${names.join('/')}`);

test('KeyTree finds all keys at or below a key after any sequence of additions and deletions', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), key)), key, (steps, top) => {
      const tree = new KeyTree();
      const members = new Set<string>();
      for (const [isAdded, each] of steps) {
        if (isAdded) members.add(each);
        else members.delete(each);
        if (isAdded) tree.add(each);
        else tree.delete(each);
      }
      const expected = [...members].filter((each) => isKeyWithin(each, top)).sort();
      expect(tree.within(top).sort()).toEqual(expected);
      const below = new Set(expected.filter((each) => each !== top).map((each) => firstBelow(each, top)));
      expect(tree.below(top).sort()).toEqual([...below].sort());
    }),
  );
});

test('KeyTree.within finds half a million keys directly below one key', () => {
  const tree = new KeyTree();
  for (let index = 0; index < 500_000; index++) tree.add(`/${index}`);
  expect(tree.within('/')).toHaveLength(500_000);
});

function firstBelow(each: string, top: string): string {
  const prefix = top === '/' ? '/' : `${top}/`;
  return prefix + (each.slice(prefix.length).split('/')[0] ?? '');
}
