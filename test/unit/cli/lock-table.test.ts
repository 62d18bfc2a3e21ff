import { expect, test } from 'vitest';
import type { ListedLock } from '../../../src/app/lock-admin.ts';
import { lockTable } from '../../../src/cli/locks/lock-table.ts';
import { pathOf } from '../../../src/util/path.ts';

const lock = (more: Partial<ListedLock>): ListedLock => ({
  drive: 'default',
  token: 'opaquelocktoken:1',
  root: pathOf(['a.docx']),
  scope: 'exclusive',
  depth: '0',
  ownerXml: '',
  principal: 'ann',
  timeoutSeconds: 600,
  expiresMs: 600_000,
  ...more,
});

test('the lock table without locks says "No locks."', () => {
  expect(lockTable([], 0)).toBe('No locks.');
});

test('the lock table has one line per lock, sorted by path, with the owner as text', () => {
  const locks = [
    lock({ root: pathOf(['b', 'c']), scope: 'shared', depth: 'infinity', principal: '', expiresMs: 30_000 }),
    lock({ ownerXml: '<D:href xmlns:D="DAV:">ann &amp; bob</D:href>\n <x/>' }),
  ];
  expect(lockTable(locks, 0).split('\n')).toEqual([
    'path     user  owner      scope      depth     expires    token',
    '/a.docx  ann   ann & bob  exclusive  0         in 10 min  opaquelocktoken:1',
    '/b/c     -     -          shared     infinity  in 30 s    opaquelocktoken:1',
  ]);
});

test('the lock table names the drive when there are several', () => {
  const text = lockTable([lock({}), lock({ drive: 'work' })], 0);
  expect(text).toMatch(/^drive +path/);
  expect(text).toMatch(/^work +\/a\.docx/m);
});

test('the lock table shows no control characters or line breaks from a client', () => {
  const evil = '\u001b[2Jx\n\u202egnp';
  const text = lockTable([lock({ root: pathOf([evil]), ownerXml: `\u001b]0;${evil}`, principal: evil })], 0);
  expect(text.split('\n')).toHaveLength(2);
  for (const sign of ['\u001b', '\u202e']) expect(text).not.toContain(sign);
});
