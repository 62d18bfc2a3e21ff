import { expect, test } from 'vitest';
import { requestHref } from '../../../src/dav/request-href.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';

const path = pathOf(['Über uns', 'a&b']);
const NFD = `/${encodeURIComponent('Über uns'.normalize('NFD'))}/a&b`;

test.each([
  ['as it was sent', '/%C3%9Cber%20uns/a&b', '/%C3%9Cber%20uns/a&b/'],
  ['in the form of a Mac', NFD, `${NFD}/`],
  ['with needless escapes and slashes left out', '//%c3%9cber%20uns/%61%26b//?x=1', '/%C3%9Cber%20uns/a&b/'],
  ['as a whole URL', 'http://host:1/%C3%9Cber%20uns/a&b', '/%C3%9Cber%20uns/a&b/'],
  [
    'unescaped, as Node hands on its bytes',
    Buffer.from('/Über uns/a&b').toString('latin1'),
    '/%C3%9Cber%20uns/a&b/',
  ],
  ['of another place: a proxy rewrote it', '/elsewhere', '/%C3%9Cber%20uns/a&b/'],
  ['that cannot be decoded', '/%zz', '/%C3%9Cber%20uns/a&b/'],
  ['with a name that no path has', '/%C3%9Cber%20uns/..', '/%C3%9Cber%20uns/a&b/'],
])('a target %s', (_, target, href) => {
  expect(requestHref(target, path, true)).toBe(href);
  expect(requestHref(target, path, false)).toBe(href.slice(0, -1));
});

test('the root is one slash', () => {
  for (const target of ['/', '', '//', 'http://host']) expect(requestHref(target, ROOT, true)).toBe('/');
});
