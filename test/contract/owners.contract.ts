import { describe, expect, test } from 'vitest';
import type { Owner, Owners } from '../../src/state/owners.ts';

export const ANN: Owner = { accountId: 'dbid:ann', email: 'ann@example.org', root: '' };
export const BOB: Owner = { accountId: 'dbid:bob', email: 'bob@example.org', root: '/Team/Pläne' };

/** Tests an implementation of `Owners`; `open` returns an empty store. */
export function ownersContract(driver: string, open: () => Promise<Owners>): void {
  describe(`owners in ${driver}`, () => {
    test('each drive has its own owner, which is returned unchanged', async () => {
      const owners = await open();
      expect(await owners.get('one')).toBeUndefined();
      await owners.set('one', ANN);
      await owners.set('two', BOB);
      expect([await owners.get('one'), await owners.get('two')]).toEqual([ANN, BOB]);
      expect(await owners.get('three')).toBeUndefined();
    });

    test('setting the same owner again changes nothing', async () => {
      const owners = await open();
      await owners.set('one', BOB);
      await owners.set('one', BOB);
      expect(await owners.get('one')).toEqual(BOB);
    });
  });
}
