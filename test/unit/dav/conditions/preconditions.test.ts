import { expect, test } from 'vitest';
import { parseHttpDate } from '../../../../src/dav/conditions/preconditions.ts';

const MS = Date.UTC(1994, 10, 6, 8, 49, 37);

test.each([
  ['Sun, 06 Nov 1994 08:49:37 GMT', MS],
  ['Sunday, 06-Nov-94 08:49:37 GMT', MS],
  ['Sun Nov  6 08:49:37 1994', MS],
  [' sun, 06 nov 1994 08:49:37 gmt ', MS],
  ['Friday, 06-Nov-26 08:49:37 GMT', Date.UTC(2026, 10, 6, 8, 49, 37)],
  ['Sun, 06 Foo 1994 08:49:37 GMT', undefined],
  ['1994-11-06T08:49:37Z', undefined],
  ['784111777', undefined],
  ['', undefined],
  [undefined, undefined],
])('the text %j parses as the HTTP date %d', (text, ms) => {
  expect(parseHttpDate(text)).toBe(ms);
});
