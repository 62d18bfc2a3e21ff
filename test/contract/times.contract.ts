import { describe, expect, test } from 'vitest';
import type { Times } from '../../src/state/times.ts';

/** Tests an implementation of `Times`; `open` returns an empty store. */
export function timesContract(driver: string, open: () => Promise<Times>): void {
  describe(`set times in ${driver}`, () => {
    test('the last time that was set is returned, and only for ids that have one', async () => {
      const times = await open();
      await times.set('id:1', { rev: 'r1', modifiedMs: 1 });
      await times.set('id:1', { rev: 'r2', modifiedMs: -86_400_000 });
      await times.set('id:folder', { rev: '', modifiedMs: 253_402_300_799_000 });
      expect(await times.of(['id:1', 'ID:1', 'id:folder', 'id:none'])).toEqual(
        new Map([
          ['id:1', { rev: 'r2', modifiedMs: -86_400_000 }],
          ['id:folder', { rev: '', modifiedMs: 253_402_300_799_000 }],
        ]),
      );
    });

    test('forget drops the times of the given ids only', async () => {
      const times = await open();
      for (const id of ['id:1', 'id:2', 'id:3']) await times.set(id, { rev: 'r', modifiedMs: 1 });
      await times.forget(['id:1', 'id:3', 'id:none']);
      expect([...(await times.of(['id:1', 'id:2', 'id:3'])).keys()]).toEqual(['id:2']);
      expect(await times.ids()).toEqual(['id:2']);
    });

    test('a store of times is empty until a time is set, and after the last one is forgotten', async () => {
      const times = await open();
      expect(await times.isEmpty()).toBe(true);
      for (const id of ['id:1', 'id:2']) await times.set(id, { rev: 'r', modifiedMs: 1 });
      await times.forget(['id:1']);
      expect(await times.isEmpty()).toBe(false);
      await times.forget(['id:2']);
      expect(await times.isEmpty()).toBe(true);
    });
  });
}
