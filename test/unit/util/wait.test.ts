import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { onAbort } from '../../../src/util/abort.ts';
import { Alarm, Condition, retryPauseMs, waitAtMost } from '../../../src/util/wait.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { settle } from '../../support/readers.ts';

test('onAbort calls its listener once, with the reason of the abort', () => {
  const controller = new AbortController();
  const heard: unknown[] = [];
  onAbort(controller.signal, (reason) => heard.push(reason));
  expect(heard).toEqual([]);
  controller.abort('gone');
  controller.abort('again');
  expect(heard).toEqual(['gone']);
});

test('onAbort calls its listener at once for a signal that is aborted already', () => {
  const heard: unknown[] = [];
  onAbort(AbortSignal.abort('gone'), (reason) => heard.push(reason));
  expect(heard).toEqual(['gone']);
});

test('onAbort does not call a listener that was removed, and takes no signal for one that is never aborted', () => {
  const controller = new AbortController();
  const heard: unknown[] = [];
  const remove = onAbort(controller.signal, (reason) => heard.push(reason));
  remove();
  onAbort(undefined, (reason) => heard.push(reason))();
  controller.abort('gone');
  expect(heard).toEqual([]);
});

test('notify wakes every task that waits on a condition, and none that comes later', async () => {
  const condition = new Condition();
  const { signal } = new AbortController();
  const woken: string[] = [];
  const wait = (name: string) => condition.wait(signal).then(() => woken.push(name));
  void wait('one');
  void wait('two');
  condition.notify();
  void wait('late');
  await settle();
  expect(woken).toEqual(['one', 'two']);
});

test('a wait on a condition rejects with the reason of an abort, before it or during it', async () => {
  const condition = new Condition();
  const controller = new AbortController();
  const waiting = condition.wait(controller.signal);
  controller.abort('gone');
  await expect(waiting).rejects.toBe('gone');
  await expect(condition.wait(controller.signal)).rejects.toBe('gone');
  condition.notify();
});

test('a wait on a condition leaves no listener on its signal', async () => {
  const condition = new Condition();
  const { signal } = new AbortController();
  const waiting = condition.wait(signal);
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  condition.notify();
  await waiting;
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('the sleep of an alarm ends after its time, and not before', async () => {
  const { clock, alarm, ends } = alarmClock();
  void ends(alarm.sleep(1_000));
  await clock.advance(999);
  expect(ends.count).toBe(0);
  await clock.advance(1);
  expect(ends.count).toBe(1);
});

test('a ring ends the sleep of an alarm at once, also one that has no end of its own', async () => {
  const { alarm, ends } = alarmClock();
  for (const ms of [1_000, Number.POSITIVE_INFINITY]) {
    const sleep = ends(alarm.sleep(ms));
    await settle();
    alarm.ring();
    await sleep;
  }
  expect(ends.count).toBe(2);
});

test('a ring before the sleep of an alarm ends that one sleep only', async () => {
  const { alarm, ends } = alarmClock();
  alarm.ring();
  await ends(alarm.sleep(1_000));
  void ends(alarm.sleep(1_000));
  await settle();
  expect(ends.count).toBe(1);
});

test('an abort of its signal ends the sleep of an alarm without an error', async () => {
  const { alarm } = alarmClock();
  const controller = new AbortController();
  const sleep = alarm.sleep(Number.POSITIVE_INFINITY, controller.signal);
  controller.abort('gone');
  await sleep;
  await alarm.sleep(1_000, controller.signal);
});

test('waitAtMost returns what the work resolves with, and leaves no timer', async () => {
  const clock = new ManualClock();
  expect(await waitAtMost(clock, 1_000, Promise.resolve('done'), () => 'late')).toBe('done');
  expect(clock.nextMs).toBeUndefined();
});

test('waitAtMost rejects as the work does', async () => {
  const work = Promise.reject(new Error('broken'));
  await expect(waitAtMost(new ManualClock(), 1_000, work, () => 'late')).rejects.toThrow('broken');
});

test('waitAtMost returns or throws what onLate does when the work takes too long', async () => {
  const clock = new ManualClock();
  const never = new Promise<string>(() => {});
  expect(await clock.during(waitAtMost(clock, 1_000, never, () => 'late'))).toBe('late');
  const fail = (): never => {
    throw new Error('too late');
  };
  await expect(clock.during(waitAtMost(clock, 1_000, never, fail))).rejects.toThrow('too late');
});

test('the pause between retries doubles with each failure, up to its maximum', () => {
  const pauses = { firstMs: 1_000, maxMs: 5_000 };
  expect([1, 2, 3, 4, 2_000].map((failures) => retryPauseMs(pauses, failures))).toEqual([
    1_000, 2_000, 4_000, 5_000, 5_000,
  ]);
});

function alarmClock() {
  const clock = new ManualClock();
  const ends = Object.assign(
    async (sleep: Promise<void>) => {
      await sleep;
      ends.count++;
    },
    { count: 0 },
  );
  return { clock, alarm: new Alarm(clock), ends };
}
