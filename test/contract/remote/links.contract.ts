import { beforeAll, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { ANY, type RemoteUnderTest } from './remote-under-test.ts';

/** Shared links. */
export function linksContract(drive: RemoteUnderTest): void {
  let remote: Remote;
  beforeAll(() => {
    remote = drive.remote;
  });
  const { room } = drive;

  describe('shared links', () => {
    test('one is made, found, and revoked', async () => {
      const at = path(`${await room()}/shared.txt`);
      await remote.write(at, bodyOf('x'), ANY);
      expect(await remote.sharedLink(at)).toBeUndefined();
      const link = await remote.createSharedLink(at, {});
      expect(link).toMatchObject({ visibility: 'public', url: expect.stringMatching(/^https?:\/\//) });
      expect(await remote.sharedLink(at)).toEqual(link);
      await remote.revokeSharedLink(link.url);
      expect(await remote.sharedLink(at)).toBeUndefined();
      await expect(remote.revokeSharedLink(link.url)).rejects.toMatchObject({ failure: 'link-gone' });
    });

    test('not two for the same path', async () => {
      const folder = await room();
      await remote.createSharedLink(path(folder), {});
      await expect(
        remote.createSharedLink(path(folder), { visibility: 'password', password: 'secret' }),
      ).rejects.toMatchObject({ failure: 'link-exists' });
      // A link of the folder is none of what is in it.
      const file = await remote.write(path(`${folder}/f`), bodyOf('x'), ANY);
      expect(await remote.sharedLink(file.path)).toBeUndefined();
    });

    test('with a password and an end', async () => {
      const at = path(`${await room()}/secret.txt`);
      await remote.write(at, bodyOf('x'), ANY);
      const expiresMs = Date.UTC(2100, 0, 1);
      const settings = { visibility: 'password', password: 'opensesame', expiresMs } as const;
      const link = await remote.createSharedLink(at, settings);
      expect(link).toMatchObject({ visibility: 'password', expiresMs });
      expect(JSON.stringify(await remote.sharedLink(at))).not.toContain('opensesame');
    });

    test('settings without sense are refused', async () => {
      const folder = await room();
      await expect(remote.createSharedLink(path(folder), { visibility: 'password' })).rejects.toMatchObject({
        failure: 'link-settings',
      });
    });
  });
}
