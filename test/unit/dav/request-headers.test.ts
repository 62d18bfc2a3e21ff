import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { DavError } from '../../../src/dav/errors.ts';
import { depthOf, lockTimeoutSeconds, lockTokenOf, overwriteOf } from '../../../src/dav/request-headers.ts';

const headers = (name: string, value: string | undefined): IncomingHttpHeaders =>
  value === undefined ? {} : { [name]: value };

describe('Depth', () => {
  test.each([
    [undefined, 'infinity'],
    ['0', '0'],
    [' 0 ', '0'],
    ['Infinity', 'infinity'],
  ])('the header Depth: %j is depth %j', (value, depth) => {
    expect(depthOf(headers('depth', value), ['0', 'infinity'], 'infinity')).toBe(depth);
  });

  test.each(['1', '2', '-1', '', 'all', '0, 0'])(
    'the header Depth: %j answers 400 where it is not allowed',
    (value) => {
      expect(() => depthOf(headers('depth', value), ['0', 'infinity'], 'infinity')).toThrow(DavError);
    },
  );
});

describe('Overwrite', () => {
  test.each([
    [undefined, true],
    ['T', true],
    ['t', true],
    ['F', false],
    [' f ', false],
  ])('the header Overwrite: %j is %j', (value, overwrite) => {
    expect(overwriteOf(headers('overwrite', value))).toBe(overwrite);
  });

  test.each(['', 'yes', 'FT'])('the header Overwrite: %j answers 400', (value) => {
    expect(() => overwriteOf(headers('overwrite', value))).toThrow(DavError);
  });
});

describe('Timeout', () => {
  test.each([
    [undefined, 3600],
    ['Second-600', 600],
    ['second-180', 180],
    ['Second-5', 60],
    ['Second-0', 60],
    ['Second-4100000000', 3600],
    ['Second-99999999999999999999999', 3600],
    ['Infinite', 3600],
    ['Infinite, Second-600', 3600],
    ['Minute-5, Second-600', 600],
    ['Second-x', 3600],
    ['', 3600],
  ])('the header Timeout: %j gives a lock %d seconds', (value, seconds) => {
    expect(lockTimeoutSeconds(headers('timeout', value))).toBe(seconds);
  });
});

describe('Lock-Token', () => {
  test.each(['<urn:uuid:1>', 'urn:uuid:1', ' <urn:uuid:1> '])(
    'the header Lock-Token: %j names a token',
    (value) => {
      expect(lockTokenOf(headers('lock-token', value))).toBe('urn:uuid:1');
    },
  );

  test.each([undefined, '', '<>', '<a> <b>', 'a b'])('the header Lock-Token: %j answers 400', (value) => {
    expect(() => lockTokenOf(headers('lock-token', value))).toThrow(DavError);
  });
});
