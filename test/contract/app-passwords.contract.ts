import { describe, expect, test } from 'vitest';
import type { AppPassword, AppPasswordStore } from '../../src/state/app-passwords.ts';

const appPassword = (id: string, createdMs = 1_000): AppPassword => ({
  id,
  name: `for ${id}`,
  hash: `hash of ${id}`,
  createdMs,
});

/** Tests an implementation of `AppPasswordStore`; `open` returns an empty store. */
export function appPasswordsContract(driver: string, open: () => Promise<AppPasswordStore>): void {
  describe(`app passwords in ${driver}`, () => {
    test("each user has app passwords of their own, the oldest first, and 'use' notes the last use of one", async () => {
      const store = await open();
      expect(await store.all('Jörg')).toEqual([]);
      expect(await store.add('Jörg', appPassword('b', 1_000), 9)).toBe(true);
      expect(await store.add('Jörg', appPassword('a', 2_000), 9)).toBe(true);
      expect(await store.add('ann', appPassword('a'), 9)).toBe(true);
      await store.use('Jörg', 'a', 5_000);
      await store.use('Jörg', 'a', 6_000);
      expect(await store.all('Jörg')).toEqual([
        appPassword('b', 1_000),
        { ...appPassword('a', 2_000), usedMs: 6_000 },
      ]);
      expect(await store.all('ann')).toEqual([appPassword('a')]);
    });

    test('remove ends one app password, and its use does not bring it back', async () => {
      const store = await open();
      await store.add('ann', appPassword('a'), 9);
      await store.add('ann', appPassword('b'), 9);
      expect(await store.remove('joe', 'a')).toBe(false);
      expect(await store.remove('ann', 'a')).toBe(true);
      await store.use('ann', 'a', 5_000);
      expect(await store.remove('ann', 'a')).toBe(false);
      expect(await store.all('ann')).toEqual([appPassword('b')]);
    });

    test('a user who has the maximum number of app passwords gets no other until one is removed', async () => {
      const store = await open();
      expect(await store.add('ann', appPassword('a'), 2)).toBe(true);
      expect(await store.add('ann', appPassword('b'), 2)).toBe(true);
      expect(await store.add('ann', appPassword('c'), 2)).toBe(false);
      await store.remove('ann', 'a');
      expect(await store.add('ann', appPassword('c'), 2)).toBe(true);
      expect((await store.all('ann')).map(({ id }) => id)).toEqual(['b', 'c']);
    });
  });
}
