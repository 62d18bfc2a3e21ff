import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Offer } from '../../../src/api/shared-turns.ts';
import { TurnTaken, type TurnWork } from '../../../src/api/turns.ts';
import { answered, granted, LOST, scriptedTurns, WAITING } from '../../support/scripted-turns.ts';

/** Never aborted. */
const { signal } = new AbortController();

/** Work with one entry, which notes the offers that were done with it. */
class NotedWork implements TurnWork<string> {
  readonly kind = 'commit';
  readonly done: (readonly Offer[])[] = [];

  constructor(readonly entries: readonly string[] = ['own']) {}

  async together(offers: readonly Offer[]) {
    this.done.push(offers);
    return { own: 'done here', answers: offers.map(({ entries }) => `done ${entries}`) };
  }

  answerAfter(error: unknown): string {
    return `failed: ${error}`;
  }

  read(text: string): string | undefined {
    return text === 'not done' ? undefined : text;
  }

  async lost(): Promise<string> {
    return 'lost';
  }
}

test('the gateway whose turn has come does the work of others with its own, and answers them at the end', async () => {
  const { clock, shared, turns } = scriptedTurns(granted(['a'], ['b', 'c']));
  const work = new NotedWork();
  expect(await clock.during(turns.run(work, signal))).toBe('done here');
  expect(work.done.map((offers) => offers.map(({ entries }) => entries))).toEqual([[['a'], ['b', 'c']]]);
  expect(shared.left).toEqual([
    [
      { id: 'offer-0', text: 'done a' },
      { id: 'offer-1', text: 'done b,c' },
    ],
  ]);
});

test('a gateway that waits asks again after 5 ms, or 2 ms for each one that waits, with the same id until its turn comes', async () => {
  const { clock, shared, turns } = scriptedTurns(WAITING, { is: 'waiting', waiting: 10 }, granted());
  const start = clock.now();
  expect(await clock.during(turns.run(new NotedWork(), signal))).toBe('done here');
  expect(clock.now() - start).toBe(25);
  expect(shared.asked.map(({ isRepeated }) => isRepeated)).toEqual([false, true, true]);
  expect(new Set(shared.asked.map(({ id }) => id)).size).toBe(1);
});

test('work that yields is not done while another gateway has the turn, and gives its place in the line back', async () => {
  const { clock, shared, turns } = scriptedTurns(granted(), WAITING);
  const work = Object.assign(new NotedWork([]), { waits: false });
  expect(await clock.during(turns.run(work, signal))).toBe('done here');
  await expect(clock.during(turns.run(work, signal))).rejects.toThrow(TurnTaken);
  expect([work.done.length, shared.left.length, turns.isShared]).toEqual([1, 2, true]);
});

test('work that another gateway has done is not done again', async () => {
  const { clock, turns } = scriptedTurns(WAITING, answered('done there'));
  const work = new NotedWork();
  expect(await clock.during(turns.run(work, signal))).toBe('done there');
  expect(work.done).toEqual([]);
});

test('work that another gateway could not send is offered again', async () => {
  const { clock, shared, turns } = scriptedTurns(WAITING, answered('not done'), granted());
  const work = new NotedWork();
  expect(await clock.during(turns.run(work, signal))).toBe('done here');
  expect(shared.asked.map(({ isRepeated }) => isRepeated)).toEqual([false, true, false]);
});

test('work that a killed gateway may have done is not done again', async () => {
  const { clock, turns } = scriptedTurns(WAITING, LOST);
  const work = new NotedWork();
  expect(await clock.during(turns.run(work, signal))).toBe('lost');
  expect(work.done).toEqual([]);
});

test('work that was offered before the shared turns went away is not done, because another gateway may do it', async () => {
  const { clock, turns } = scriptedTurns(WAITING);
  const work = new NotedWork();
  expect(await clock.during(turns.run(work, signal))).toBe('lost');
  expect(work.done).toEqual([]);
});

test('work that no other gateway may do is done when the shared turns go away, and later work does not ask', async () => {
  const { clock, shared, turns } = scriptedTurns(WAITING);
  expect(await clock.during(turns.run(new NotedWork([]), signal))).toBe('done here');
  expect(await clock.during(turns.run(new NotedWork(), signal))).toBe('done here');
  expect(shared.asked).toHaveLength(2);
});

test('when the work fails, the turn ends and each offer is told of the failure', async () => {
  const { clock, shared, turns } = scriptedTurns(granted(['a']));
  const work = new NotedWork();
  work.together = () => Promise.reject(new Error('no line'));
  await expect(clock.during(turns.run(work, signal))).rejects.toThrow('no line');
  expect(shared.left).toEqual([[{ id: 'offer-0', text: 'failed: Error: no line' }]]);
});

test('a client that leaves while its work waits ends the wait and gives the place in the line back', async () => {
  const { clock, shared, turns } = scriptedTurns(WAITING);
  const leaving = new AbortController();
  const ended = turns.run(new NotedWork(), leaving.signal).catch((reason: unknown) => reason);
  await clock.untilSleeping();
  leaving.abort('left');
  expect(await ended).toBe('left');
  expect(shared.left).toEqual([[]]);
});

test('a turn is renewed every 5 s while its work lasts', async () => {
  const { clock, shared, turns } = scriptedTurns(granted());
  const work = new NotedWork();
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  work.together = async () => {
    await ended;
    return { own: 'done here', answers: [] };
  };
  const running = turns.run(work, signal);
  await setImmediate();
  await clock.advance(10_000);
  expect(shared.renewals).toBe(2);
  end();
  await running;
  await clock.advance(10_000);
  expect(shared.renewals).toBe(2);
});

test('a gateway counts as one of several for 5 s after it has met another one', async () => {
  const { clock, turns } = scriptedTurns(granted(), WAITING, granted());
  await clock.during(turns.run(new NotedWork(), signal));
  expect(turns.isShared).toBe(false);
  await clock.during(turns.run(new NotedWork(), signal));
  expect(turns.isShared).toBe(true);
  await clock.advance(5000);
  expect(turns.isShared).toBe(false);
});

test('one of several gateways waits for the offers of others before its first question can be answered with a turn', async () => {
  const { clock, shared, turns } = scriptedTurns(WAITING, granted(), WAITING, granted());
  await clock.during(turns.run(new NotedWork(), signal));
  await clock.during(turns.run(new NotedWork(), signal));
  expect(shared.asked.map(({ isGathering }) => isGathering)).toEqual([false, false, true, false]);
});
