import { describe, expect, test } from 'vitest';
import type { ChangeStream } from '../../src/state/change-stream.ts';
import { aHundredAtOnce } from '../support/a-hundred-at-once.ts';
import { expectSoon } from '../support/eventually.ts';

/** Makes a stream lose its last events. */
interface Loss {
  /** Saves the events of the newest stream. */
  save(): Promise<void>;
  /** Loses the events that were added since. */
  restore(): Promise<void>;
}

/** Tests an implementation of `ChangeStream`; `openTwo` returns the stream of a new drive at two gateways. */
export function changeStreamContract(
  driver: string,
  openTwo: () => Promise<readonly [ChangeStream, ChangeStream]>,
  loss: Loss,
): void {
  /** Adds two events. The stream loses the second one. Returns their positions. */
  async function loseLast(stream: ChangeStream) {
    const { position: kept } = await stream.add('kept', undefined);
    await loss.save();
    const { position: lost } = await stream.add('lost', kept);
    await loss.restore();
    return { kept, lost };
  }

  describe(`change stream in ${driver}`, () => {
    test('events of all gateways have one order, and their numbers follow each other', async () => {
      const [one, other] = await openTwo();
      const begin = (await other.after(undefined)).end;
      const a = await one.add('a', begin);
      const b = await other.add('b', begin);
      const c = await one.add('c', a.position);
      expect([a, b, c].map(({ before }) => before)).toEqual([begin, a.position, b.position]);
      expect([a, b, c].map(({ position }) => position.number - begin.number)).toEqual([1, 2, 3]);
      const page = await other.after(begin);
      expect(page).toMatchObject({ end: c.position, isLost: false });
      expect(page.events).toEqual([
        { position: a.position, gateway: one.gateway, text: 'a' },
        { position: b.position, gateway: other.gateway, text: 'b' },
        { position: c.position, gateway: one.gateway, text: 'c' },
      ]);
      expect(await other.after(c.position)).toMatchObject({ events: [], end: c.position, isLost: false });
    });

    test('events that many gateways add at the same time each have a number of their own', async () => {
      const [one, other] = await openTwo();
      const begin = (await one.after(undefined)).end;
      const adding = Array.from({ length: 200 }, (_, index) =>
        (index % 2 ? one : other).add(`${index}`, begin),
      );
      const numbers = (await Promise.all(adding))
        .map(({ position }) => position.number)
        .sort((a, b) => a - b);
      expect(numbers).toEqual(numbers.map((_, index) => begin.number + 1 + index));
      expect((await one.after(begin)).events).toHaveLength(200);
    });

    test('a reader learns that it has missed events which the stream has dropped', async () => {
      const [one, other] = await openTwo();
      const begin = (await one.after(undefined)).end;
      const adding = Array.from({ length: 2_500 }, () => () => one.add('x', begin));
      const added = await aHundredAtOnce().addAll(adding);
      expect((await other.after(begin)).isLost).toBe(true);
      // The reader alone was late.
      expect((await one.after(added[2_490]?.position)).isLost).toBe(false);
    });

    test('a reader learns that events which it has read are lost, though others have got their numbers', async () => {
      const [one, other] = await openTwo();
      const { kept, lost } = await loseLast(one);
      const { position: again } = await other.add('again', kept);
      const { position: next } = await other.add('next', again);
      expect(again.number).toBe(lost.number);
      expect(await one.after(lost)).toMatchObject({ isLost: true, end: { number: next.number } });
    });

    test('a reader learns that the last events which it has read are lost before others are added', async () => {
      const [one] = await openTwo();
      const { kept, lost } = await loseLast(one);
      const page = await one.after(lost);
      expect(page).toMatchObject({ isLost: true, end: { number: kept.number } });
      expect((await one.after(page.end)).isLost).toBe(false);
    });

    test('a reader of what is left learns that it may have missed events, when another one has read them', async () => {
      const [one, other] = await openTwo();
      const { kept, lost } = await loseLast(one);
      expect((await other.after(kept)).isLost).toBe(false);
      await one.after(lost);
      expect((await other.after(kept)).isLost).toBe(true);
    });

    test('an event that is added after a loss which its gateway has not noticed follows nothing that any gateway has read', async () => {
      const [one, other] = await openTwo();
      const { kept, lost } = await loseLast(one);
      const { position: again } = await other.add('again', kept);
      const late = await one.add('late', lost);
      expect(late.before).toMatchObject({ number: lost.number, nonce: again.nonce });
      expect(late.before).not.toEqual(lost);
      expect((await other.after(again)).isLost).toBe(true);
      expect((await one.after(late.position)).isLost).toBe(false);
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
      const begin = (await one.after(undefined)).end;
      expect(await one.feed.cursor()).toBeUndefined();
      expect(await one.feed.add(undefined, 'c1', 'first')).toBe(true);
      expect(await other.feed.add(undefined, 'c9', 'late')).toBe(false);
      expect(await other.feed.add('c1', 'c2', 'second')).toBe(true);
      expect(await one.feed.add('c1', 'c3', 'late')).toBe(false);
      expect(await one.feed.cursor()).toBe('c2');
      const texts = (await one.after(begin)).events.map(({ text }) => text);
      expect(texts).toEqual(['first', 'second']);
    });
  });
}
