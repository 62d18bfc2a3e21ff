import { expect, test } from 'vitest';
import { parseSeconds } from '../../../../src/dav/properties/property-times.ts';

test.each([
  ['1600000000', 1_600_000_000_000],
  ['1600000000.123456', 1_600_000_000_123],
  ['-1', -1_000],
  ['0', 0],
  ['-62135596800', -62_135_596_800_000],
  ['-62135596801', undefined],
  ['999999999999', undefined],
  ['1e3', undefined],
  ['now', undefined],
])('the header X-OC-Mtime: %j is %d ms since 1970', (text, ms) => {
  expect(parseSeconds(text)).toBe(ms);
});
