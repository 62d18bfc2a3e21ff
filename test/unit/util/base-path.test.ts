import { describe, expect, test } from 'vitest';
import { parseBasePath, partAbove, pathBelow } from '../../../src/util/base-path.ts';

describe('parseBasePath', () => {
  test.each([
    ['/drive', '/drive'],
    ['/team/drive/', '/team/drive'],
    ['/a%20b', '/a%20b'],
    ['/', ''],
    ['', ''],
  ])('the text %j is the base path %j', (text, base) => {
    expect(parseBasePath(text)).toBe(base);
  });

  test.each([
    'drive',
    '//drive',
    '/a//b',
    '/a/../b',
    '/%2e%2E/b',
    '/./a',
    '/a%2Fb',
    '/a b',
    '/a%',
    '/a?b',
    '/a#b',
    '/a,/b',
    '/"><b>',
    '/%ff',
    'https://host/drive',
  ])('the text %j is no base path', (text) => {
    expect(parseBasePath(text)).toBeUndefined();
  });
});

describe('pathBelow', () => {
  test.each([
    ['', '/a', '/a'],
    ['/drive', '/drive', '/'],
    ['/drive', '/drive/', '/'],
    ['/drive', '/drive/a%20b/', '/a%20b/'],
    ['/drive', '/drive/drive/a', '/drive/a'],
    ['/drive', '//drive//a', '//a'],
    ['/drive', '/%64rive/a', '/a'],
    ['/a%20b', '/a%20b/c', '/c'],
    ['/b%C3%BCro', '/bu%CC%88ro/c', '/c'],
    ['/team/drive', '/team//drive/a', '/a'],
  ])('below %j the path %j is %j', (base, path, below) => {
    expect(pathBelow(base, path)).toBe(below);
  });

  test.each([
    ['/drive', '/'],
    ['/drive', '/drives'],
    ['/drive', '/drives/a'],
    ['/drive', '/Drive/a'],
    ['/drive', '/a/drive'],
    ['/drive', '/./drive/a'],
    ['/drive', '/a/../drive/a'],
    ['/team/drive', '/team/a'],
    ['/team/drive', '/team%2Fdrive/a'],
    ['/drive', '/%zz/a'],
  ])('the path outside of %j is refused: %j', (base, path) => {
    expect(pathBelow(base, path)).toBeUndefined();
  });
});

describe('partAbove', () => {
  test.each([
    ['/team/drive', '/', ''],
    ['/team/drive', '/team', '/team'],
    ['/team/drive', '/team/', '/team'],
    ['/team/drive', '//t%65am//', '/team'],
  ])('a folder above %j is recognized: %j', (base, path, part) => {
    expect(partAbove(base, path)).toBe(part);
  });

  test.each([
    ['', '/'],
    ['/drive', '/drive'],
    ['/drive', '/other'],
    ['/team/drive', '/team/drive/a'],
    ['/team/drive', '/other/'],
  ])('no folder above %j: %j', (base, path) => {
    expect(partAbove(base, path)).toBeUndefined();
  });
});
