import { describe, expect, test } from 'vitest';
import type { ChangeStream } from '../../src/state/change-stream.ts';
import { expectSoon } from '../support/eventually.ts';

/** Tests an implementation of `ChangeStream`; `openTwo` returns the stream of a new drive at two gateways. */
export function changeStreamContract(
  driver: string,
  openTwo: () => Promise<readonly [ChangeStream, ChangeStream]>,
): void {
  describe(`change stream in ${driver}`, () => {
    test('events of all gateways have one order, and their positions follow each other', async () => {
      const [one, other] = await openTwo();
      const begin = (await other.after(undefined)).end;
      const positions = [await one.add('a'), await other.add('b'), await one.add('c')];
      expect(positions).toEqual([begin + 1, begin + 2, begin + 3]);
      const page = await other.after(begin);
      expect(page).toMatchObject({ end: begin + 3, isLost: false });
      expect(page.events).toEqual([
        { position: begin + 1, gateway: one.gateway, text: 'a' },
        { position: begin + 2, gateway: other.gateway, text: 'b' },
        { position: begin + 3, gateway: one.gateway, text: 'c' },
      ]);
      expect(await other.after(begin + 3)).toMatchObject({ events: [], end: begin + 3, isLost: false });
    });

    test('events that many gateways add at the same time each have a position of their own', async () => {
      const [one, other] = await openTwo();
      const begin = (await one.after(undefined)).end;
      const added = Array.from({ length: 200 }, (_, index) => (index % 2 ? one : other).add(`${index}`));
      const positions = (await Promise.all(added)).sort((a, b) => a - b);
      expect(positions).toEqual(positions.map((_, index) => begin + 1 + index));
      expect((await one.after(begin)).events).toHaveLength(200);
    });

    test('a reader learns that it has missed events which the stream has dropped', async () => {
      const [one, other] = await openTwo();
      const begin = (await one.after(undefined)).end;
      const added = Array.from({ length: 2_500 }, () => one.add('x'));
      await Promise.all(added);
      expect((await other.after(begin)).isLost).toBe(true);
      expect((await other.after(begin + 2_490)).isLost).toBe(false);
      // Redis has lost what the reader has seen.
      expect((await other.after(begin + 9_999)).isLost).toBe(true);
    });

    test('the change feed is the turn of one gateway until that ends it', async () => {
      const [one, other] = await openTwo();
      expect(await one.feed.takeTurn(60_000, { isUp: false })).toBe(true);
      expect(await other.feed.takeTurn(60_000, { isUp: true })).toBe(false);
      expect((await other.after(undefined)).isFeedUp).toBe(false);
      expect(await one.feed.takeTurn(60_000, { isUp: true })).toBe(true);
      expect((await other.after(undefined)).isFeedUp).toBe(true);
      await other.feed.endTurn();
      expect(await other.feed.takeTurn(60_000, { isUp: true })).toBe(false);
      await one.feed.endTurn();
      expect((await other.after(undefined)).isFeedUp).toBe(false);
      expect(await other.feed.takeTurn(60_000, { isUp: true })).toBe(true);
    });

    test('the turn of a gateway that does not renew it passes to another', async () => {
      const [one, other] = await openTwo();
      expect(await one.feed.takeTurn(50, { isUp: true })).toBe(true);
      await expectSoon(() => other.feed.takeTurn(60_000, { isUp: true })).toBe(true);
      expect(await one.feed.takeTurn(60_000, { isUp: true })).toBe(false);
    });

    test('a page of the change feed is added once, by the gateway that read on from the cursor first', async () => {
      const [one, other] = await openTwo();
      expect(await one.feed.cursor()).toBeUndefined();
      expect(await one.feed.add(undefined, 'c1', 'first')).toBe(true);
      expect(await other.feed.add(undefined, 'c9', 'late')).toBe(false);
      expect(await other.feed.add('c1', 'c2', 'second')).toBe(true);
      expect(await one.feed.add('c1', 'c3', 'late')).toBe(false);
      expect(await one.feed.cursor()).toBe('c2');
      const { end } = await one.after(undefined);
      const texts = (await one.after(end - 2)).events.map(({ text }) => text);
      expect(texts).toEqual(['first', 'second']);
    });
  });
}
