import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRange } from '../../../src/util/ranges.ts';

const UNSATISFIABLE = 'unsatisfiable' as const;

describe('parseRange', () => {
  test.each([
    ['bytes=0-', 10, [[0, 10]]],
    ['bytes=0-0', 10, [[0, 1]]],
    ['bytes=9-9', 10, [[9, 10]]],
    ['bytes=2-5', 10, [[2, 6]]],
    ['bytes=5-999', 10, [[5, 10]]],
    ['bytes=5-99999999999999999999999', 10, [[5, 10]]],
    ['bytes=-3', 10, [[7, 10]]],
    ['bytes=-30', 10, [[0, 10]]],
    [' Bytes = 1 - 2 ', 10, [[1, 3]]],
    ['bytes=0-1,,8-9,', 1000, [[0, 10]]],
    [
      'bytes=800-809,0-9',
      1000,
      [
        [800, 810],
        [0, 10],
      ],
    ],
    [
      'bytes=0-9,800-809,2000-',
      1000,
      [
        [0, 10],
        [800, 810],
      ],
    ],
    ['bytes=500-999,0-600', 1000, [[0, 1000]]],
    [
      'bytes=0-9,300-309,5-20',
      1000,
      [
        [0, 21],
        [300, 310],
      ],
    ],
  ])('the Range %j of %d bytes is %j', (header, sizeBytes, ranges) => {
    expect(parseRange(header, sizeBytes)).toEqual(ranges.map(([start, end]) => ({ start, end })));
  });

  test.each([
    ['bytes=10-', 10],
    ['bytes=10-20', 10],
    ['bytes=-0', 10],
    ['bytes=0-', 0],
    ['bytes=20-,30-40', 10],
    ['bytes=-0', 0],
  ])('the Range %j of %d bytes cannot be satisfied', (header, sizeBytes) => {
    expect(parseRange(header, sizeBytes)).toBe(UNSATISFIABLE);
  });

  test.each([
    ['bytes=', 10],
    ['bytes=-', 10],
    ['bytes=a-b', 10],
    ['bytes=5-2', 10],
    ['bytes=0-1;2-3', 10],
    ['bytes=--1', 10],
    ['bytes=0-1,x', 10],
    ['lines=0-1', 10],
    ['0-1', 10],
    [`bytes=${Array.from({ length: 65 }, (_, index) => `${index * 1000}-${index * 1000}`)}`, 100_000],
    ['bytes=-5', 0],
  ])('the Range %j of %d bytes is ignored', (header, sizeBytes) => {
    expect(parseRange(header, sizeBytes)).toBeUndefined();
  });

  test('parseRange never returns bytes beyond the end or overlapping ranges', () => {
    const bound = fc.option(fc.nat(2_000), { nil: '' });
    const spec = fc.tuple(bound, bound).map(([first, last]) => `${first}-${last}`);
    fc.assert(
      fc.property(fc.array(spec, { minLength: 1, maxLength: 8 }), fc.nat(1_500), (specs, sizeBytes) => {
        const ranges = parseRange(`bytes=${specs}`, sizeBytes);
        if (ranges === undefined || ranges === UNSATISFIABLE) return;
        const sorted = [...ranges].sort((one, other) => one.start - other.start);
        for (const [index, { start, end }] of sorted.entries()) {
          expect(start).toBeGreaterThanOrEqual(sorted[index - 1]?.end ?? 0);
          expect(end).toBeGreaterThan(start);
          expect(end).toBeLessThanOrEqual(sizeBytes);
        }
      }),
    );
  });
});
