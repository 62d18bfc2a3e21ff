import { beforeAll, describe, expect, test } from 'vitest';
import type { LinkChange, LinkedEntry, Remote } from '../../../src/api/remote.ts';
import { isWithin, nameOf } from '../../../src/util/path.ts';
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

    test('all links of the drive are listed with their entries, and those of one path alone', async () => {
      const folder = path(await newFolder());
      const file = await remote.write(path(`${folder}/Shared.TXT`), bodyOf('x'), ANY);
      const links = [await remote.createSharedLink(folder, {}), await remote.createSharedLink(file.path, {})];
      const shown = (listed: readonly LinkedEntry[]) =>
        listed
          .filter((link) => isWithin(link.path, folder))
          .map(({ kind, path: at, ...link }) => ({ kind, name: nameOf(at), link }))
          .sort((one, other) => one.kind.localeCompare(other.kind));
      const ofFile = { kind: 'file', name: 'Shared.TXT', link: links[1] };
      const ofFolder = { kind: 'folder', name: nameOf(folder), link: links[0] };
      expect(shown(await remote.sharedLinks(undefined))).toEqual([ofFile, ofFolder]);
      expect(shown(await remote.sharedLinks(file.path))).toEqual([ofFile]);
      await expect(remote.sharedLinks(path(`${folder}/none`))).rejects.toMatchObject({
        failure: 'not-found',
      });
    });

    test('a change of a shared link keeps the settings that it does not name', async () => {
      const link = await remote.createSharedLink(path(await newFolder()), {});
      const expiresMs = Date.UTC(2100, 0, 1);
      const change = (how: LinkChange) => remote.changeSharedLink(link.url, how);
      const withPassword = { ...link, visibility: 'password' };
      expect(await change({ visibility: 'password', password: 'sesame' })).toEqual(withPassword);
      expect(await change({ expiresMs })).toEqual({ ...withPassword, expiresMs });
      expect(await change({ visibility: 'password', password: 'another' })).toEqual({
        ...withPassword,
        expiresMs,
      });
      expect(await change({ expiresMs: 'never' })).toEqual(withPassword);
      expect(await change({ visibility: 'public' })).toEqual(link);
    });

    test('a change of a revoked link fails with link-gone', async () => {
      const { url } = await remote.createSharedLink(path(await newFolder()), {});
      await remote.revokeSharedLink(url);
      await expect(remote.changeSharedLink(url, { expiresMs: 'never' })).rejects.toMatchObject({
        failure: 'link-gone',
      });
    });

    test('a shared link with visibility password needs a password', async () => {
      const folder = await newFolder();
      await expect(remote.createSharedLink(path(folder), { visibility: 'password' })).rejects.toMatchObject({
        failure: 'link-settings',
      });
    });
  });
}
