import { expect, test } from 'vitest';
import { mediaTypeOf } from '../../../src/util/media-types.ts';

test.each([
  ['a.txt', 'text/plain; charset=utf-8'],
  ['A.TXT', 'text/plain; charset=utf-8'],
  ['a.tar.gz', 'application/gzip'],
  ['a.html', 'text/html'],
  ['a.kdbx', 'application/x-keepass2'],
  ['a.svg', 'image/svg+xml'],
  ['a.svgz', 'application/gzip'],
  ['a.ts', undefined],
  ['a.constructor', undefined],
  ['txt', undefined],
  ['.txt', undefined],
  ['a.', undefined],
  ['', undefined],
])('the file name %j has the media type %j', (name, type) => {
  expect(mediaTypeOf(name)).toBe(type);
});
