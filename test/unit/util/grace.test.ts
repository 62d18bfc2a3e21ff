import { expect, test } from 'vitest';
import { endsBefore, withinGrace } from '../../../src/util/grace.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('withinGrace aborts its signal after 8 s, and returns at once when the work ends earlier', async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const close = (over: AbortSignal) =>
    new Promise<void>((resolve) => over.addEventListener('abort', () => resolve()));
  await clock.during(withinGrace({ clock, log: silentLog }, close));
  expect(clock.now() - start).toBe(8_000);
  await withinGrace({ clock, log: silentLog }, async () => undefined);
  expect(clock.sleeping).toBe(0);
});

test('withinGrace gives up work that hangs after 9.5 s, before docker stop kills it, and logs that', async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const errors: string[] = [];
  const log = { ...silentLog, error: (event: string) => void errors.push(event) };
  await clock.during(withinGrace({ clock, log }, () => new Promise(() => {})));
  expect(clock.now() - start).toBe(9_500);
  expect(errors).toEqual(['davgate stops before everything is closed; acknowledged writes are safe']);
});

test('endsBefore throws the failure of its work, and tells whether the work ended before the signal', async () => {
  const over = new AbortController();
  await expect(endsBefore(over.signal, Promise.reject(new Error('why')))).rejects.toThrow('why');
  expect(await endsBefore(over.signal, Promise.resolve())).toBe(true);
  over.abort();
  expect(await endsBefore(over.signal, new Promise(() => {}))).toBe(false);
});
