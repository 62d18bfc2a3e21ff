import { expect, test } from 'vitest';
import { withinTime } from '../../../src/util/within-time.ts';

test('withinTime returns the very value that the work returns', () => {
  const made = { a: 1 };
  expect(withinTime(() => made, 1000)).toBe(made);
});

test('withinTime throws what the work throws', () => {
  const error = new RangeError('out');
  expect(() =>
    withinTime(() => {
      throw error;
    }, 1000),
  ).toThrow(error);
});

test('withinTime aborts endless work, also inside a regular expression', () => {
  const endless = () => {
    for (;;);
  };
  expect(withinTime(endless, 20)).toBeUndefined();
  expect(withinTime(() => /^(a+)+$/.test(`${'a'.repeat(60)}b`), 20)).toBeUndefined();
});

test('a nested withinTime aborts only its own work, and the outer one aborts both', () => {
  const endless = () => {
    for (;;);
  };
  expect(withinTime(() => [withinTime(endless, 20), 'rest'], 10_000)).toEqual([undefined, 'rest']);
  expect(withinTime(() => withinTime(endless, 10_000), 20)).toBeUndefined();
  expect(withinTime(() => 'next', 1000)).toBe('next');
});
