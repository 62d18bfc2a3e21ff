import { describe, expect, test } from 'vitest';
import type { Placeholder, PlaceholderStore } from '../../src/state/placeholders.ts';
import type { DriveState } from '../../src/state/state.ts';
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
      await placeholders.forget(placeholderAt('/A', 'hold:/a'));
      await placeholders.forget(placeholderAt('/none'));
      expect(paths(await placeholders.within(ROOT))).toEqual(['/a/x', '/ab']);
      expect(await placeholders.get(path('/a'))).toBeUndefined();
    });

    test('forget leaves a placeholder that has replaced the forgotten one', async () => {
      const placeholders = await open();
      await placeholders.put(placeholderAt('/a', 'hold:1'));
      await placeholders.put(placeholderAt('/a', 'hold:2'));
      await placeholders.forget(placeholderAt('/a', 'hold:1'));
      expect(await placeholders.get(path('/a'))).toEqual(placeholderAt('/a', 'hold:2'));
      expect(await placeholders.in(ROOT)).toHaveLength(1);
    });
  });
}

/** Tests what several gateways need of a `PlaceholderStore`; `openTwo` returns a new drive, as two of them have it. */
export function sharedPlaceholdersContract(
  driver: string,
  openTwo: () => Promise<readonly [DriveState, DriveState]>,
): void {
  describe(`placeholders that gateways share in ${driver}`, () => {
    test('a placeholder is exchanged by one of two gateways, and not once it has changed', async () => {
      const [{ placeholders: one }, { placeholders: other }] = await openTwo();
      const last = placeholderAt('/a');
      await one.put(last);
      const outcomes = await Promise.all([
        one.exchange?.(last, { ...last, owner: 'one' }),
        other.exchange?.(last, { ...last, owner: 'other', isBusy: true }),
      ]);
      expect(outcomes.toSorted()).toEqual([false, true]);
      const found = await one.get(path('/a'));
      expect(found?.owner).toBe(outcomes[0] ? 'one' : 'other');
      expect(await other.exchange?.({ ...last, owner: 'nobody' }, last)).toBe(false);
      if (found) expect(await other.exchange?.(found, last)).toBe(true);
      expect(await one.get(path('/A'))).toEqual(last);
    });

    test('a placeholder that was forgotten is not exchanged', async () => {
      const [{ placeholders: one }, { placeholders: other }] = await openTwo();
      await one.put(placeholderAt('/a'));
      await other.forget(placeholderAt('/a'));
      expect(await one.exchange?.(placeholderAt('/a'), placeholderAt('/a', 'hold:2'))).toBe(false);
      expect(await one.within(ROOT)).toEqual([]);
    });

    test('a lookup tells the number of the last event of the change stream', async () => {
      const [one, { placeholders }] = await openTwo();
      await placeholders.get(path('/a'));
      expect(placeholders.lastEvent?.()).toBe(0);
      const lookups = [
        () => placeholders.get(path('/a')),
        () => placeholders.in(ROOT),
        () => placeholders.within(ROOT),
      ];
      for (const [index, lookUp] of lookups.entries()) {
        await one.changeStream?.add('event', undefined);
        await lookUp();
        expect(placeholders.lastEvent?.()).toBe(index + 1);
      }
    });
  });
}
