import { describe, expect, test } from 'vitest';
import { alternatives } from '../../../src/service/storage/tree/places.ts';
import { HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

// The path rules of service-api.md §9.1.
describe('malformed paths', () => {
  test.each([
    ['relative', 'a'],
    ['the root as a slash', '/'],
    ['an empty name', '/a//b'],
    ['a slash at the end', '/a/'],
    ['a space at the end', '/a '],
    ['a folder with a space at its end', '/a /b'],
    ['.', '/a/./b'],
    ['..', '/a/../b'],
    ['a backslash', '/a\\b'],
    ['a NUL', '/a\0b'],
    ['DEL', '/a\u007fb'],
    ['half a character', '/a\ud800b'],
    ['256 characters', `/${'a'.repeat(256)}`],
    ['128 emoji', `/${'😀'.repeat(128)}`],
    ['too many folders', '/a'.repeat(513)],
    ['too much of everything', `/${'a'.repeat(250)}`.repeat(70)],
    ['a namespace', 'ns:1/a'],
  ])('a malformed path (%s) answers malformed_path to upload, createFolder and stat', async (_, path) => {
    const storage = await opened();
    expect(await refusal(put(storage, path, 'x'))).toBe('write/malformed_path');
    expect(await refusal(storage.createFolder(HOME, path, false))).toBe('write/malformed_path');
    expect(await refusal(() => storage.stat(HOME, path, false))).toBe('lookup/malformed_path');
  });

  test('the root cannot be written, removed or moved', async () => {
    const storage = await opened();
    expect(await refusal(put(storage, '', 'x'))).toBe('write/malformed_path');
    expect(await refusal(storage.remove(HOME, ''))).toBe('lookup/malformed_path');
    expect(await refusal(storage.removeForever(HOME, ''))).toBe('lookup/malformed_path');
    const options = { copy: false, autorename: false };
    expect(await refusal(storage.relocate(HOME, '', '/a', options))).toBe('lookup/malformed_path');
  });
});

test.each(['.DS_Store', 'THUMBS.DB', 'desktop.ini', 'Icon\r', '.dropbox', '.dropbox.attr', '.Dropbox.Cache'])(
  'the disallowed name %j cannot be written, and looking it up answers not_found',
  async (name) => {
    const storage = await opened();
    await put(storage, '/a/b', 'x');
    expect(await refusal(put(storage, `/a/${name}`, 'x'))).toBe('write/disallowed_name');
    expect(await refusal(put(storage, `/${name}/x`, 'x'))).toBe('write/disallowed_name');
    const options = { copy: false, autorename: false };
    expect(await refusal(storage.relocate(HOME, '/a/b', `/a/${name}`, options))).toBe(
      'write/disallowed_name',
    );
    expect(await refusal(() => storage.stat(HOME, `/a/${name}`, false))).toBe('lookup/not_found');
  },
);

test.each([
  'a\nb',
  'a\r\nb',
  'a\n',
  'a\r',
  'a\t',
  'a\v',
  'a\u00a0',
  'a\u3000',
  ' a',
  'a.',
  '~$a',
  '._a',
  '#?%&',
  '<>:"|*',
  'İ',
  'a'.repeat(255),
  '😀'.repeat(127),
  '日本語',
])('the name %j is stored unchanged', async (name) => {
  const storage = await opened();
  expect(await put(storage, `/in/${name}`, 'x')).toMatchObject({ name, pathDisplay: `/in/${name}` });
  expect(await textAt(storage, `/in/${name}`)).toBe('x');
});

test('names are found in any case and in NFD, and keep the case of their first write', async () => {
  const storage = await opened();
  await put(storage, '/Ordner/Straße ÄÖ.txt', 'x');
  const nfd = '/ordner/straße äö.TXT'.normalize('NFD');
  expect(await storage.stat(HOME, nfd, false)).toMatchObject({
    name: 'Straße ÄÖ.txt',
    pathDisplay: '/Ordner/Straße ÄÖ.txt',
    pathLower: '/ordner/straße äö.txt',
  });
  expect(await put(storage, nfd, 'y')).toMatchObject({ name: 'Straße ÄÖ.txt' });
  expect(await put(storage, '/ORDNER/neu'.normalize('NFD'), 'z')).toMatchObject({
    pathDisplay: '/Ordner/neu',
  });
  expect(await put(storage, '/ΣΑΣ', 's')).toMatchObject({ pathLower: '/σασ' });
});

test('removing a folder leaves files and folders whose names begin with its name', async () => {
  const storage = await opened();
  for (const path of ['/a/x', '/a b/x', '/a-b/x', '/a0/x', '/a.txt', '/A/y']) await put(storage, path, path);
  await storage.remove(HOME, '/a');
  const left = (await storage.list(OWNER, { path: '', recursive: true, includeDeleted: false }, 100)).entries;
  expect(
    left
      .filter((entry) => entry.kind === 'file')
      .map((entry) => entry.pathDisplay)
      .sort(),
  ).toEqual(['/a b/x', '/a-b/x', '/a.txt', '/a0/x']);
});

test('ids that differ only in letter case name different files', async () => {
  const ids = ['id:AAAAAAAAAAAAAAAAAAAAAA', 'id:aAAAAAAAAAAAAAAAAAAAAA'];
  const minted = ids[Symbol.iterator]();
  const storage = await opened({ mintId: () => minted.next().value ?? 'id:none' });
  await put(storage, '/one', '1');
  await put(storage, '/two', '2');
  expect(await storage.statAll(HOME, ids)).toMatchObject([{ name: 'one' }, { name: 'two' }]);
  expect(await textAt(storage, 'id:aAAAAAAAAAAAAAAAAAAAAA')).toBe('2');
  await storage.remove(HOME, 'id:AAAAAAAAAAAAAAAAAAAAAA');
  expect(await textAt(storage, '/two')).toBe('2');
  expect(await refusal(() => storage.stat(HOME, 'id:aaAAAAAAAAAAAAAAAAAAAA', false))).toBe(
    'lookup/not_found',
  );
});

test('an id is id: and 22 characters of base64url', async () => {
  const storage = await opened();
  expect((await put(storage, '/a', 'x')).id).toMatch(/^id:[\w-]{22}$/);
});

test('an id addresses its item, and a folder’s id also a path below it', async () => {
  const storage = await opened();
  const folder = await storage.createFolder(HOME, '/Folder', false);
  const file = await put(storage, `${folder.id}/deep/a.txt`, 'a');
  expect(file.pathDisplay).toBe('/Folder/deep/a.txt');
  expect(await put(storage, file.id, 'b')).toMatchObject({ id: file.id, pathDisplay: '/Folder/deep/a.txt' });
  expect(await textAt(storage, `${folder.id}/DEEP/a.txt`)).toBe('b');
  expect(await refusal(put(storage, 'id:nothing', 'x'))).toBe('write/malformed_path');
});

test.each([
  ['a.txt', 'file', 'a (1).txt', 'a (2).txt'],
  ['archive.tar.gz', 'file', 'archive.tar (1).gz', 'archive.tar (2).gz'],
  ['.bashrc', 'file', '.bashrc (1)', '.bashrc (2)'],
  ['v1.0', 'folder', 'v1.0 (1)', 'v1.0 (2)'],
  ['a.txt', 'conflicted-copy', 'a (conflicted copy).txt', 'a (conflicted copy 1).txt'],
  [`${'a'.repeat(251)}.txt`, 'file', `${'a'.repeat(247)} (1).txt`, `${'a'.repeat(247)} (2).txt`],
  [`a.${'x'.repeat(253)}`, 'file', `a.${'x'.repeat(249)} (1)`, `a.${'x'.repeat(249)} (2)`],
  ['😀'.repeat(127), 'file', `${'😀'.repeat(125)} (1)`, `${'😀'.repeat(125)} (2)`],
] as const)('%s as a %s is renamed to %s', (name, style, first, second) => {
  const names = alternatives(name, style);
  expect([names.next().value, names.next().value]).toEqual([first, second]);
});
