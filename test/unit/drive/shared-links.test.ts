import { beforeEach, expect, test } from 'vitest';
import { replaceLink, revokeLink } from '../../../src/drive/shared-links.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let remote: MemoryRemote;

beforeEach(() => {
  remote = new MemoryRemote();
  remote.putFile(at('/a'), 'a');
});

test('replaceLink creates a link with one call where there is none', async () => {
  await replaceLink(remote, at('/a'), {});
  expect(remote.calls.map(({ call }) => call)).toEqual(['createSharedLink']);
});

test('replaceLink replaces an existing link with a new one', async () => {
  const old = await replaceLink(remote, at('/a'), {});
  const link = await replaceLink(remote, at('/a'), { visibility: 'password', password: 'sesame' });
  expect(link.url).not.toBe(old.url);
  expect(await remote.sharedLink(at('/a'))).toEqual(link);
});

test('revokeLink succeeds when another client has ended the link at the same time', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'link-gone', { late: true });
  await revokeLink(remote, at('/a'));
  expect(await remote.sharedLink(at('/a'))).toBeUndefined();
});

test('revokeLink fails with no-permission when the service refuses to end the link', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'no-permission');
  await expect(revokeLink(remote, at('/a'))).rejects.toMatchObject({ failure: 'no-permission' });
});
