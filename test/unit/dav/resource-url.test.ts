import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DavError } from '../../../src/dav/errors.ts';
import { hrefOf, parseResourceUrl, requestHref } from '../../../src/dav/resource-url.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';

describe('parseResourceUrl', () => {
  test.each([
    ['/', '/', true],
    ['', '/', true],
    ['/a', '/a', false],
    ['/a/', '/a', true],
    ['/a/b%20c', '/a/b c', false],
    ['//a///b//', '/a/b', true],
    ['/a%23b%3Fc', '/a#b?c', false],
    ['/a?b=/c#d', '/a', false],
    ['/a%25zz', '/a%zz', false],
    ['/%252e%252e/a', '/%2e%2e/a', false],
    ['http://other.example:81/a/b', '/a/b', false],
    ['HTTPS://user@other.example', '/', true],
    ['/a/http://b/c', '/a/http:/b/c', false],
    ['/%e2%82%ac', '/€', false],
    // NFD, as Finder sends it, and unescaped bytes.
    ['/u%CC%88', '/ü', false],
    ['/\u00c3\u00bc', '/ü', false],
    ['/a%0Ab', '/a\nb', false],
    // Bytes that are not UTF-8 are never a slash or a dot.
    ['/caf%e9', '/caf\u201bE9', false],
    ['/caf\u00e9', '/caf\u201bE9', false],
    ['/%c0%ae%c0%ae/%c0%af', '/\u201bC0\u201bAE\u201bC0\u201bAE/\u201bC0\u201bAF', false],
    ['/a\\b', '/a\\b', false],
    ['/...', '/...', false],
  ])('the URL %j names the path %j', (target, path, hasTrailingSlash) => {
    expect(parseResourceUrl(target)).toEqual({ path, hasTrailingSlash });
  });

  test.each([
    ['/%zz', 400, '%zz'],
    ['/%', 400, '"%"'],
    ['/a%2', 400, '%'],
    ['/a/../b', 400, '".."'],
    ['/a/%2e%2e/b', 400, '".."'],
    ['/a/%2E./b', 400, '".."'],
    ['/./a', 400, '"."'],
    ['/..', 400, '".."'],
    ['/a%2fb', 400, '%2F'],
    ['/..%2Fetc', 400, '%2F'],
    ['/a%00.txt', 400, 'NUL'],
    ['/a#b', 400, '%23'],
    ['a/b', 400, 'slash'],
    ['/a'.repeat(257), 414, '256'],
  ])('the URL %j answers %d with a message that contains %j', (target, status, reason) => {
    const refusal = refusalOf(() => parseResourceUrl(target));
    expect(refusal.status).toBe(status);
    expect(refusal.message).toContain(reason);
  });

  test('the href of a path parses as the same path', () => {
    const names = fc.array(fc.string({ unit: 'grapheme', minLength: 1 }).filter(isName), { maxLength: 6 });
    fc.assert(
      fc.property(names, fc.boolean(), (some, isCollection) => {
        const path = pathOf(some);
        const href = hrefOf({ prefix: '' }, path, isCollection);
        expect(href).toMatch(/^(\/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)+$/);
        expect(parseResourceUrl(href)).toEqual({ path, hasTrailingSlash: isCollection || some.length === 0 });
      }),
    );
  });

  test('any sequence of URL characters is either a normalized path or a DavError', () => {
    const pieces = fc.constantFrom(
      '/',
      '%',
      '%2',
      '%2f',
      '%2e',
      '.',
      '..',
      '%00',
      'a',
      '?',
      '#',
      '%c3',
      '%bc',
      '\u00ff',
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (some) => {
        const target = some.join('');
        try {
          const { path } = parseResourceUrl(target);
          expect(path).toBe(pathOf(path.split('/').filter(Boolean)));
        } catch (error) {
          expect(error).toBeInstanceOf(DavError);
        }
      }),
    );
  });
});

const PATH = pathOf(['Über uns', 'a&b']);
const NFD = `/${encodeURIComponent('Über uns'.normalize('NFD'))}/a&b`;

test.each([
  ['in the stored spelling', '/%C3%9Cber%20uns/a&b', '/%C3%9Cber%20uns/a&b/'],
  ['in NFD, as macOS sends it', NFD, `${NFD}/`],
  ['with needless escapes and slashes', '//%c3%9cber%20uns/%61%26b//?x=1', '/%C3%9Cber%20uns/a&b/'],
  ['in absolute form', 'http://host:1/%C3%9Cber%20uns/a&b', '/%C3%9Cber%20uns/a&b/'],
  ['with unescaped bytes', Buffer.from('/Über uns/a&b').toString('latin1'), '/%C3%9Cber%20uns/a&b/'],
  ['that a proxy rewrote to another path', '/elsewhere', '/%C3%9Cber%20uns/a&b/'],
  ['that cannot be decoded', '/%zz', '/%C3%9Cber%20uns/a&b/'],
  ['with an invalid name', '/%C3%9Cber%20uns/..', '/%C3%9Cber%20uns/a&b/'],
])('the href for a request target %s leads back to the resource', (_, target, href) => {
  expect(requestHref({ target, prefix: '' }, PATH, true)).toBe(href);
  expect(requestHref({ target, prefix: '' }, PATH, false)).toBe(href.slice(0, -1));
});

test('the href of the root is one slash, whatever the request target', () => {
  for (const target of ['/', '', '//', 'http://host'])
    expect(requestHref({ target, prefix: '' }, ROOT, true)).toBe('/');
});

function isName(name: string): boolean {
  return name !== '.' && name !== '..' && !/[/\0]/.test(name) && name.isWellFormed();
}

function refusalOf(run: () => unknown): DavError {
  try {
    run();
  } catch (error) {
    if (error instanceof DavError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}
