import { expect, test } from 'vitest';
import { largest, smallest } from '../../../src/util/extremes.ts';

test('smallest and largest find the extremes of half a million numbers', () => {
  const numbers = Array.from({ length: 500_000 }, (_, index) => Math.abs(index - 250_000) - 7);
  expect([smallest(numbers), largest(numbers)]).toEqual([-7, 249_993]);
});

test('smallest of no numbers is Infinity, and largest is -Infinity', () => {
  expect([smallest([]), largest([])]).toEqual([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
});
