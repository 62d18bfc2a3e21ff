import { describe, expect, test } from 'vitest';
import type { Placeholder, PlaceholderStore } from '../../src/state/placeholders.ts';
import { ROOT } from '../../src/util/path.ts';
import { path } from '../support/paths.ts';

export function placeholderAt(at: string, id = `hold:${at}`): Placeholder {
  return { path: path(at), id, rev: 'r1', modifiedMs: 1_000, untilMs: 61_000 };
}

const paths = (placeholders: readonly Placeholder[]) => placeholders.map((each) => each.path).sort();

/** Tests an implementation of `PlaceholderStore`; `open` returns an empty store. */
export function placeholdersContract(driver: string, open: () => Promise<PlaceholderStore>): void {
  describe(`placeholders in ${driver}`, () => {
    test('a placeholder is returned unchanged, in any letter case', async () => {
      const placeholders = await open();
      await placeholders.put(placeholderAt('/Ä/New'));
      expect(await placeholders.get(path('/ä/NEW'))).toEqual(placeholderAt('/Ä/New'));
      expect(await placeholders.get(path('/ä'))).toBeUndefined();
    });

    test('a placeholder replaces an earlier one at its path', async () => {
      const placeholders = await open();
      await placeholders.put(placeholderAt('/a', 'hold:1'));
      await placeholders.put(placeholderAt('/A', 'hold:2'));
      expect(await placeholders.within(ROOT)).toEqual([placeholderAt('/A', 'hold:2')]);
    });

    test('placeholders are found by their folder, and by any folder above', async () => {
      const placeholders = await open();
      for (const at of ['/x', '/a/x', '/A/y', '/a/b/z', '/ab/x', '/a!/x', '/_/x'])
        await placeholders.put(placeholderAt(at));
      expect(paths(await placeholders.in(ROOT))).toEqual(['/x']);
      expect(paths(await placeholders.in(path('/a')))).toEqual(['/A/y', '/a/x']);
      expect(paths(await placeholders.within(path('/a')))).toEqual(['/A/y', '/a/b/z', '/a/x']);
      expect(paths(await placeholders.within(path('/a/x')))).toEqual(['/a/x']);
      expect(paths(await placeholders.within(path('/_')))).toEqual(['/_/x']);
      expect(await placeholders.within(ROOT)).toHaveLength(7);
    });

    test('forget drops the placeholder at one path only', async () => {
      const placeholders = await open();
      for (const at of ['/a', '/a/x', '/ab']) await placeholders.put(placeholderAt(at));
      await placeholders.forget(path('/A'));
      await placeholders.forget(path('/none'));
      expect(paths(await placeholders.within(ROOT))).toEqual(['/a/x', '/ab']);
    });
  });
}
