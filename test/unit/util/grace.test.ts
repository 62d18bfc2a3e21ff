import { expect, test } from 'vitest';
import { endsBefore, withinGrace } from '../../../src/util/grace.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('an orderly end is told after 8 s that its time is over, and takes no longer than it needs', async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const close = (over: AbortSignal) =>
    new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
  await clock.during(withinGrace({ clock, log: silentLog }, close));
  expect(clock.now() - start).toBe(8_000);
  await withinGrace({ clock, log: silentLog }, async () => undefined);
  expect(clock.sleeping).toBe(0);
});

test('an end that hangs all the same is given up within the 10 s that docker stop waits, with a line in the log', async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const errors: string[] = [];
  const log = { ...silentLog, error: (event: string) => void errors.push(event) };
  await clock.during(withinGrace({ clock, log }, () => new Promise(() => {})));
  expect(clock.now() - start).toBe(9_500);
  expect(errors).toEqual(['davgate stops before everything is closed; acknowledged writes are safe']);
});

test('a failure of the awaited work is thrown to the caller, and no listener stays on the signal', async () => {
  const over = new AbortController();
  await expect(endsBefore(over.signal, Promise.reject(new Error('why')))).rejects.toThrow('why');
  expect(await endsBefore(over.signal, Promise.resolve())).toBe(true);
  over.abort();
  expect(await endsBefore(over.signal, new Promise(() => {}))).toBe(false);
});
