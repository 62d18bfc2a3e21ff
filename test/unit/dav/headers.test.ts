import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import { DavError } from '../../../src/dav/errors.ts';
import {
  depthOf,
  lockTimeoutSeconds,
  lockTokenOf,
  mtimeOf,
  overwriteOf,
  parseHttpDate,
} from '../../../src/dav/headers.ts';

const headers = (name: string, value: string | undefined): IncomingHttpHeaders =>
  value === undefined ? {} : { [name]: value };

describe('Depth', () => {
  test.each([
    [undefined, 'infinity'],
    ['0', '0'],
    [' 0 ', '0'],
    ['Infinity', 'infinity'],
  ])('%j is %j', (value, depth) => {
    expect(depthOf(headers('depth', value), ['0', 'infinity'], 'infinity')).toBe(depth);
  });

  test.each(['1', '2', '-1', '', 'all', '0, 0'])('%j is refused', (value) => {
    expect(() => depthOf(headers('depth', value), ['0', 'infinity'], 'infinity')).toThrow(DavError);
  });
});

describe('Overwrite', () => {
  test.each([
    [undefined, true],
    ['T', true],
    ['t', true],
    ['F', false],
    [' f ', false],
  ])('%j is %j', (value, overwrite) => {
    expect(overwriteOf(headers('overwrite', value))).toBe(overwrite);
  });

  test.each(['', 'yes', 'FT'])('%j is refused', (value) => {
    expect(() => overwriteOf(headers('overwrite', value))).toThrow(DavError);
  });
});

describe('the time of a lock', () => {
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
  ])('%j is %d seconds', (value, seconds) => {
    expect(lockTimeoutSeconds(headers('timeout', value))).toBe(seconds);
  });
});

describe('Lock-Token', () => {
  test.each(['<urn:uuid:1>', 'urn:uuid:1', ' <urn:uuid:1> '])('%j', (value) => {
    expect(lockTokenOf(headers('lock-token', value))).toBe('urn:uuid:1');
  });

  test.each([undefined, '', '<>', '<a> <b>', 'a b'])('%j is refused', (value) => {
    expect(() => lockTokenOf(headers('lock-token', value))).toThrow(DavError);
  });
});

describe('a date', () => {
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
  ])('%j', (text, ms) => {
    expect(parseHttpDate(text)).toBe(ms);
  });
});

describe('X-OC-Mtime', () => {
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
  ])('%j', (text, ms) => {
    expect(mtimeOf(headers('x-oc-mtime', text))).toBe(ms);
  });
});
