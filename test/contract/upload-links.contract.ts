import { describe, expect, test } from 'vitest';
import type { UploadLink, UploadLinkStore } from '../../src/state/upload-links.ts';
import { path } from '../support/paths.ts';

const uploadLink = (id: string, more: Partial<UploadLink> = {}): UploadLink => ({
  ...{
    id,
    user: 'Jörg',
    tokenHash: `hash of ${id}`,
    label: `for ${id}`,
    path: path('/Büro/In'),
    createdMs: 1_000,
  },
  ...more,
});

/** Tests an implementation of `UploadLinkStore`; `open` returns an empty store. */
export function uploadLinksContract(driver: string, open: () => Promise<UploadLinkStore>): void {
  describe(`upload links in ${driver}`, () => {
    test('each user has upload links of their own, the oldest first, which are found by the hash of the token', async () => {
      const store = await open();
      expect(await store.all('Jörg')).toEqual([]);
      const whole = uploadLink('a', {
        ...{ createdMs: 2_000, passwordHash: 'scrypt$x', expiresMs: 3_000, sizeBytesMax: 10 },
      });
      for (const link of [uploadLink('b'), whole, uploadLink('c', { user: '' })])
        expect(await store.add(link, 9)).toBe(true);
      expect(await store.all('Jörg')).toEqual([
        { ...uploadLink('b'), usedBytes: 0 },
        { ...whole, usedBytes: 0 },
      ]);
      expect(await store.find('hash of a')).toEqual({ ...whole, usedBytes: 0 });
      expect((await store.all('')).map(({ id }) => id)).toEqual(['c']);
      expect(await store.find('a')).toBeUndefined();
    });

    test('used bytes are counted up to the maximum of the link, and taken back', async () => {
      const store = await open();
      const link = uploadLink('a', { sizeBytesMax: 10 });
      await store.add(link, 9);
      await store.add(uploadLink('b'), 9);
      expect(await store.use(link, 6)).toBe(true);
      expect(await store.use(link, 5)).toBe(false);
      expect(await store.use(link, 4)).toBe(true);
      await store.takeBack(link, 6);
      expect(await store.use(uploadLink('b'), 2 ** 50)).toBe(true);
      expect((await store.all('Jörg')).map(({ usedBytes }) => usedBytes)).toEqual([4, 2 ** 50]);
    });

    test('a removed link is not found, takes no bytes, and makes room for another one', async () => {
      const store = await open();
      expect(await store.add(uploadLink('a'), 1)).toBe(true);
      expect(await store.add(uploadLink('b'), 1)).toBe(false);
      expect(await store.find('hash of b')).toBeUndefined();
      expect(await store.remove('ann', 'a')).toBe(false);
      expect(await store.remove('Jörg', 'a')).toBe(true);
      expect(await store.remove('Jörg', 'a')).toBe(false);
      expect(await store.use(uploadLink('a'), 1)).toBe(false);
      await store.takeBack(uploadLink('a'), 1);
      expect(await store.find('hash of a')).toBeUndefined();
      expect(await store.add(uploadLink('b'), 1)).toBe(true);
      expect((await store.all('Jörg')).map(({ id }) => id)).toEqual(['b']);
    });
  });
}
