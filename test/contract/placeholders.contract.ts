import { describe, expect, test } from 'vitest';
import type { Hold, Holds } from '../../src/state/placeholders.ts';
import { ROOT } from '../../src/util/path.ts';
import { path } from '../support/paths.ts';

export function holdAt(at: string, id = `hold:${at}`): Hold {
  return { path: path(at), id, rev: 'r1', modifiedMs: 1_000, untilMs: 61_000 };
}

const paths = (holds: readonly Hold[]) => holds.map((hold) => hold.path).sort();

/** What every driver of `Holds` holds to; `open` gives an empty store. */
export function holdsContract(driver: string, open: () => Promise<Holds>): void {
  describe(`held files in ${driver}`, () => {
    test('what was put is told as it was given, in any letter case', async () => {
      const holds = await open();
      await holds.put(holdAt('/Ä/New'));
      expect(await holds.get(path('/ä/NEW'))).toEqual(holdAt('/Ä/New'));
      expect(await holds.get(path('/ä'))).toBeUndefined();
    });

    test('a later one takes the place of an earlier', async () => {
      const holds = await open();
      await holds.put(holdAt('/a', 'hold:1'));
      await holds.put(holdAt('/A', 'hold:2'));
      expect(await holds.within(ROOT)).toEqual([holdAt('/A', 'hold:2')]);
    });

    test('a folder has those directly in it, and within it those below too', async () => {
      const holds = await open();
      for (const at of ['/x', '/a/x', '/A/y', '/a/b/z', '/ab/x', '/a!/x', '/_/x'])
        await holds.put(holdAt(at));
      expect(paths(await holds.in(ROOT))).toEqual(['/x']);
      expect(paths(await holds.in(path('/a')))).toEqual(['/A/y', '/a/x']);
      expect(paths(await holds.within(path('/a')))).toEqual(['/A/y', '/a/b/z', '/a/x']);
      expect(paths(await holds.within(path('/a/x')))).toEqual(['/a/x']);
      expect(paths(await holds.within(path('/_')))).toEqual(['/_/x']);
      expect(await holds.within(ROOT)).toHaveLength(7);
    });

    test('forgetting drops the one at that path', async () => {
      const holds = await open();
      for (const at of ['/a', '/a/x', '/ab']) await holds.put(holdAt(at));
      await holds.forget(path('/A'));
      await holds.forget(path('/none'));
      expect(paths(await holds.within(ROOT))).toEqual(['/a/x', '/ab']);
    });
  });
}
