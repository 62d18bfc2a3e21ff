import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ANY, type RemoteUnderTest } from './remote-under-test.ts';

/** Tests shared links. */
export function linksContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { newFolder } = drive;

  describe('shared links', () => {
    test('a shared link can be created, found and revoked', async () => {
      const at = path(`${await newFolder()}/shared.txt`);
      await remote.write(at, bodyOf('x'), ANY);
      expect(await remote.sharedLink(at)).toBeUndefined();
      const link = await remote.createSharedLink(at, {});
      expect(link).toMatchObject({ visibility: 'public', url: expect.stringMatching(/^https?:\/\//) });
      expect(await remote.sharedLink(at)).toEqual(link);
      await remote.revokeSharedLink(link.url);
      expect(await remote.sharedLink(at)).toBeUndefined();
      await expect(remote.revokeSharedLink(link.url)).rejects.toMatchObject({ failure: 'link-gone' });
    });

    test('a second shared link of one path is refused, and the link of a folder is not one of its files', async () => {
      const folder = await newFolder();
      await remote.createSharedLink(path(folder), {});
      await expect(
        remote.createSharedLink(path(folder), { visibility: 'password', password: 'secret' }),
      ).rejects.toMatchObject({ failure: 'link-exists' });
      // The link of a folder is not the link of a file in it.
      const file = await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
      expect(await remote.sharedLink(file.path)).toBeUndefined();
    });

    test('a shared link can have a password and an expiry, and does not show the password', async () => {
      const at = path(`${await newFolder()}/secret.txt`);
      await remote.write(at, bodyOf('x'), ANY);
      const expiresMs = Date.UTC(2100, 0, 1);
      const settings = { visibility: 'password', password: 'opensesame', expiresMs } as const;
      const link = await remote.createSharedLink(at, settings);
      expect(link).toMatchObject({ visibility: 'password', expiresMs });
      expect(JSON.stringify(await remote.sharedLink(at))).not.toContain('opensesame');
    });

    test('a shared link with visibility password needs a password', async () => {
      const folder = await newFolder();
      await expect(remote.createSharedLink(path(folder), { visibility: 'password' })).rejects.toMatchObject({
        failure: 'link-settings',
      });
    });
  });
}
