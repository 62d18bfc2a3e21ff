import { expect, test } from 'vitest';
import { createLru } from '../../../src/util/lru.ts';

test('a full map forgets the value that was not used for the longest time', () => {
  const map = createLru<number>(3);
  for (const [name, value] of Object.entries({ a: 1, b: 2, c: 3 })) map.set(name, value);
  map.get('a');
  map.set('d', 4);
  expect([...map.keys()].sort()).toEqual(['a', 'c', 'd']);
});

test('replacing a value of a full map forgets none', () => {
  const map = createLru<number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('b', 3);
  expect([map.get('a'), map.get('b')]).toEqual([1, 3]);
});
