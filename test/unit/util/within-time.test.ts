import { expect, test } from 'vitest';
import { withinTime } from '../../../src/util/within-time.ts';

test('returns what the work returns, the very same thing', () => {
  const made = { a: 1 };
  expect(withinTime(() => made, 1000)).toBe(made);
});

test('throws what the work throws', () => {
  const error = new RangeError('out');
  expect(() =>
    withinTime(() => {
      throw error;
    }, 1000),
  ).toThrow(error);
});

test('breaks off work without an end, also inside a regular expression', () => {
  const endless = () => {
    for (;;);
  };
  expect(withinTime(endless, 20)).toBeUndefined();
  expect(withinTime(() => /^(a+)+$/.test(`${'a'.repeat(60)}b`), 20)).toBeUndefined();
});

test('within other work breaks off its own part only, or all where that has less time', () => {
  const endless = () => {
    for (;;);
  };
  expect(withinTime(() => [withinTime(endless, 20), 'rest'], 10_000)).toEqual([undefined, 'rest']);
  expect(withinTime(() => withinTime(endless, 10_000), 20)).toBeUndefined();
  expect(withinTime(() => 'next', 1000)).toBe('next');
});
