import { expect, test } from 'vitest';
import { largest, smallest } from '../../../src/util/extremes.ts';

test('the smallest and the largest of half a million numbers are found', () => {
  const numbers = Array.from({ length: 500_000 }, (_, index) => Math.abs(index - 250_000) - 7);
  expect([smallest(numbers), largest(numbers)]).toEqual([-7, 249_993]);
});

test('of no numbers the smallest is infinite, and the largest is minus infinity', () => {
  expect([smallest([]), largest([])]).toEqual([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]);
});
