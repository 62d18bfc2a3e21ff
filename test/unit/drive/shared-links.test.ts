import { beforeEach, expect, test } from 'vitest';
import { replaceLink, revokeLink } from '../../../src/drive/shared-links.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let remote: MemoryRemote;

beforeEach(() => {
  remote = new MemoryRemote();
  remote.putFile(at('/a'), 'a');
});

test('a link is made with one call where there is none', async () => {
  await replaceLink(remote, at('/a'), {});
  expect(remote.calls.map(({ call }) => call)).toEqual(['createSharedLink']);
});

test('one that is there goes first', async () => {
  const old = await replaceLink(remote, at('/a'), {});
  const link = await replaceLink(remote, at('/a'), { visibility: 'password', password: 'sesame' });
  expect(link.url).not.toBe(old.url);
  expect(await remote.sharedLink(at('/a'))).toEqual(link);
});

test('one that somebody else ends at the same time is ended', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'link-gone', { late: true });
  await revokeLink(remote, at('/a'));
  expect(await remote.sharedLink(at('/a'))).toBeUndefined();
});

test('one that cannot be ended is told of', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'no-permission');
  await expect(revokeLink(remote, at('/a'))).rejects.toMatchObject({ failure: 'no-permission' });
});
