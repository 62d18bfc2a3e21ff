import { beforeEach, expect, test } from 'vitest';
import { changeLink, replaceLink, revokeLink, revokeLinks } from '../../../src/drive/shared-links.ts';
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

test('revokeLinks succeeds when another client has ended the link at the same time', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'link-gone', { late: true });
  await revokeLinks(remote, at('/a'));
  expect(await remote.sharedLink(at('/a'))).toBeUndefined();
});

test('revokeLinks fails with no-permission when the service refuses to end the link', async () => {
  await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'no-permission');
  await expect(revokeLinks(remote, at('/a'))).rejects.toMatchObject({ failure: 'no-permission' });
});

test('changeLink takes the address of a link with the session that the service adds to it', async () => {
  const { url } = await replaceLink(remote, at('/a'), {});
  const changed = await changeLink(remote, at('/a'), `${url}?st=abc`, { expiresMs: 5_000 });
  expect(changed).toEqual({ url, visibility: 'public', expiresMs: 5_000 });
});

test('changeLink and revokeLink refuse a link of another path, and leave it unchanged', async () => {
  remote.putFile(at('/b'), 'b');
  const link = await replaceLink(remote, at('/b'), {});
  const fault = { fault: 'not-found' };
  await expect(changeLink(remote, at('/a'), link.url, { expiresMs: 5_000 })).rejects.toMatchObject(fault);
  await expect(revokeLink(remote, at('/a'), link.url)).rejects.toMatchObject(fault);
  expect(await remote.sharedLink(at('/b'))).toEqual(link);
});

test('revokeLink succeeds when another client has ended the link at the same time', async () => {
  const { url } = await replaceLink(remote, at('/a'), {});
  remote.failNext('revokeSharedLink', 'link-gone', { late: true });
  await revokeLink(remote, at('/a'), url);
  expect(await remote.sharedLink(at('/a'))).toBeUndefined();
});
