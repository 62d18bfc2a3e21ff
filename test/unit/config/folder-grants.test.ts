import { expect, test } from 'vitest';
import { parseConfigText } from '../../../src/config/config-text.ts';
import { type UserRow, userRowsOf } from '../../../src/config/user-rows.ts';

// The rights of a user in single folders.

async function usersOf(...users: readonly object[]): Promise<readonly UserRow[]> {
  const { root } = await parseConfigText(JSON.stringify(users));
  if (!root) throw new Error('the text has no value');
  return userRowsOf(root, 'davgate.json');
}

test('a user has rights in single folders, of each drive by itself', async () => {
  const folders = { '/Public/': 'read-only', '/Public/Inbox': 'read-write', '/Priva\u0301t': 'hidden' };
  const users = await usersOf(
    { name: 'ann', password: 'p', drive: 'home', folders },
    { name: 'bob', password: 'p', drives: ['home', { drive: 'local', folders: { '/': 'read-only' } }] },
  );
  expect(users.map(({ grants }) => grants.map((grant) => grant.folders))).toEqual([
    [
      [
        { path: '/Public', right: 'read-only' },
        { path: '/Public/Inbox', right: 'read-write' },
        { path: '/Priv\u00e1t', right: 'hidden' },
      ],
    ],
    [undefined, [{ path: '/', right: 'read-only' }]],
  ]);
});

test.each([
  [
    { folders: { '/Public': 'readonly' } },
    /the right in \/Public must be read-write, read-only or hidden, not "readonly"/,
  ],
  [{ folders: { Public: 'hidden' } }, /"Public" is not a folder's path; write for example \/Team\/Plans/],
  [{ folders: { '/a/../b': 'hidden' } }, /"\/a\/..\/b" is not a folder's path/],
  [{ folders: { '/a//b': 'hidden' } }, /"\/a\/\/b" is not a folder's path/],
  [{ folders: ['/a'] }, /"folders" must have keys and values/],
  [
    { folders: { '/A': 'hidden', '/a/': 'read-only' } },
    /this folder is there twice, and letter case does not distinguish folders; remove one/,
  ],
  [{ folders: { '/': 'hidden', '/a': 'hidden' } }, /this user would see nothing of the drive/],
  [
    { 'read-only': true, folders: { '/Inbox': 'read-write' } },
    /"read-only" excludes folders that are read-write; write "\/": read-only in "folders" instead/,
  ],
  [{ drive: undefined, drives: ['home'], folders: {} }, /"drives" and "folders" exclude each other/],
])('a user with %j is refused with line, column and reason', async (keys, message) => {
  const user = { name: 'ann', password: 'p', drive: 'home', ...keys };
  await expect(usersOf(user)).rejects.toThrow(message);
  await expect(usersOf(user)).rejects.toThrow(/^cannot read davgate\.json: line 1, column \d+: /);
});
