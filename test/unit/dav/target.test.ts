import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DavError } from '../../../src/dav/errors.ts';
import { hrefOf } from '../../../src/dav/href.ts';
import { parseTarget } from '../../../src/dav/target.ts';
import { pathOf } from '../../../src/util/path.ts';

describe('the path of a request', () => {
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
    // NFD, as Finder sends it, and bytes that were never escaped.
    ['/u%CC%88', '/ü', false],
    ['/\u00c3\u00bc', '/ü', false],
    ['/a%0Ab', '/a\nb', false],
    ['/a\\b', '/a\\b', false],
    ['/...', '/...', false],
  ])('%j names %j', (target, path, namesCollection) => {
    expect(parseTarget(target)).toEqual({ path, namesCollection });
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
    ['/%ff', 400, 'UTF-8'],
    ['/%c0%af', 400, 'UTF-8'],
    ['/%ed%a0%80', 400, 'UTF-8'],
    ['/\u00e9', 400, 'UTF-8'],
    ['/a#b', 400, '%23'],
    ['a/b', 400, 'slash'],
    ['/a'.repeat(257), 414, '256'],
  ])('%j is refused with %d, which names %j', (target, status, reason) => {
    const refusal = refusalOf(() => parseTarget(target));
    expect(refusal.status).toBe(status);
    expect(refusal.message).toContain(reason);
  });

  test('is read once, as it was written', () => {
    const names = fc.array(fc.string({ unit: 'grapheme', minLength: 1 }).filter(isName), { maxLength: 6 });
    fc.assert(
      fc.property(names, fc.boolean(), (some, isCollection) => {
        const path = pathOf(some);
        const href = hrefOf(path, isCollection);
        expect(href).toMatch(/^(\/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})*)+$/);
        expect(parseTarget(href)).toEqual({ path, namesCollection: isCollection || some.length === 0 });
      }),
    );
  });

  test('is either a path or refused, whatever is sent', () => {
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
          const { path } = parseTarget(target);
          expect(path).toBe(pathOf(path.split('/').filter(Boolean)));
        } catch (error) {
          expect(error).toBeInstanceOf(DavError);
        }
      }),
    );
  });
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
  throw new Error('it was not refused');
}
