import { describe, expect, test } from 'vitest';
import {
  type DownloadTarget,
  OVER_KEPT_MS,
  type UploadTarget,
} from '../../../src/service/links/temporary-links.ts';
import { HOUR_MS, NOW_MS, type OpenTwice, raceOfAll } from './directory-under-test.ts';

const DOWNLOAD: DownloadTarget = { kind: 'download', accountId: 'dbid:ann', rev: '0123' };
const UPLOAD: UploadTarget = {
  kind: 'upload',
  accountId: 'dbid:ann',
  namespace: '7',
  commit: {
    path: '/Ä "\0".txt',
    mode: { tag: 'add' },
    autorename: true,
    mute: false,
    strict_conflict: false,
    property_groups: undefined,
    client_modified: undefined,
  },
};

/** Tests an implementation of `TemporaryLinks`. */
export function temporaryLinksContract(driver: string, open: OpenTwice): void {
  describe(`the temporary links in ${driver}`, () => {
    test('a download link leads to its target until it expires, and then is over', async () => {
      const { directory, other } = await open();
      const secret = await directory.temporaryLinks.add(DOWNLOAD, NOW_MS + HOUR_MS);
      expect(await other.temporaryLinks.download(secret, NOW_MS + HOUR_MS - 1)).toEqual(DOWNLOAD);
      expect(await other.temporaryLinks.download(secret, NOW_MS + HOUR_MS)).toBe('over');
      expect(await other.temporaryLinks.claimUpload(secret, NOW_MS)).toBeUndefined();
      expect(await other.temporaryLinks.download('unknown', NOW_MS)).toBeUndefined();
    });

    test('an upload link is no download link, and is over once it expires', async () => {
      const { temporaryLinks } = (await open()).directory;
      const secret = await temporaryLinks.add(UPLOAD, NOW_MS + HOUR_MS);
      expect(await temporaryLinks.download(secret, NOW_MS)).toBeUndefined();
      expect(await temporaryLinks.claimUpload(secret, NOW_MS + HOUR_MS)).toBe('over');
      expect(await temporaryLinks.claimUpload('unknown', NOW_MS)).toBeUndefined();
    });

    test('of concurrent claims of one upload link, exactly one gets its target', async () => {
      const opened = await open();
      const secret = await opened.directory.temporaryLinks.add(UPLOAD, NOW_MS + HOUR_MS);
      const claims = await raceOfAll(opened, ({ temporaryLinks }) =>
        temporaryLinks.claimUpload(secret, NOW_MS),
      );
      expect(claims.filter((claim) => claim !== 'claimed')).toEqual([UPLOAD]);
    });

    test('a released claim can be claimed again; a used link is over', async () => {
      const { directory, other } = await open();
      const secret = await directory.temporaryLinks.add(UPLOAD, NOW_MS + HOUR_MS);
      await directory.temporaryLinks.claimUpload(secret, NOW_MS);
      await other.temporaryLinks.release(secret);
      expect(await other.temporaryLinks.claimUpload(secret, NOW_MS)).toEqual(UPLOAD);
      await other.temporaryLinks.markUsed(secret);
      await other.temporaryLinks.release(secret);
      expect(await directory.temporaryLinks.claimUpload(secret, NOW_MS)).toBe('over');
    });

    test('a link that nobody has claimed cannot be marked as used', async () => {
      const { temporaryLinks } = (await open()).directory;
      const secret = await temporaryLinks.add(UPLOAD, NOW_MS + HOUR_MS);
      await temporaryLinks.markUsed(secret);
      expect(await temporaryLinks.claimUpload(secret, NOW_MS)).toEqual(UPLOAD);
    });

    test('links are forgotten in steps once they ended long ago', async () => {
      const { temporaryLinks } = (await open()).directory;
      for (const offset of [-3, -2, -1]) await temporaryLinks.add(DOWNLOAD, NOW_MS + offset);
      const kept = await temporaryLinks.add(DOWNLOAD, NOW_MS);
      const forget = () => temporaryLinks.forgetOld(NOW_MS + OVER_KEPT_MS, 2);
      expect([await forget(), await forget(), await forget()]).toEqual([2, 1, 0]);
      expect(await temporaryLinks.download(kept, NOW_MS)).toBe('over');
    });
  });
}
