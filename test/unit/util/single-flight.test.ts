import { expect, test } from 'vitest';
import { SingleFlight } from '../../../src/util/single-flight.ts';

/** Returns work that a test finishes by hand, and its calls. */
function manualWork() {
  const calls: { signal: AbortSignal; finish(value: string): void; fail(reason: Error): void }[] = [];
  const work = (signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => {
      calls.push({ signal, finish: resolve, fail: reject });
    });
  return { calls, work };
}

test('callers of one key share one piece of work and its value', async () => {
  const flights = new SingleFlight<string, string>();
  const { calls, work } = manualWork();
  const all = [flights.run('a', work), flights.run('a', work), flights.run('b', work)];
  expect(calls).toHaveLength(2);
  calls[0]?.finish('one');
  calls[1]?.finish('other');
  expect(await Promise.all(all)).toEqual(['one', 'one', 'other']);
});

test('callers share a failure, and the next caller tries again', async () => {
  const flights = new SingleFlight<string, string>();
  const { calls, work } = manualWork();
  const outcomes = Promise.allSettled([flights.run('a', work), flights.run('a', work)]);
  calls[0]?.fail(new Error('refused'));
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const again = flights.run('a', work);
  calls[1]?.finish('well');
  expect(await again).toBe('well');
});

test('work that throws synchronously rejects', async () => {
  const flights = new SingleFlight<string, string>();
  const outcome = flights.run('a', () => {
    throw new Error('refused');
  });
  await expect(outcome).rejects.toThrow('refused');
});

test('a caller that leaves does not abort the work for the others', async () => {
  const flights = new SingleFlight<string, string>();
  const { calls, work } = manualWork();
  const leaver = new AbortController();
  const left = flights.run('a', work, leaver.signal);
  const stayed = flights.run('a', work, new AbortController().signal);
  leaver.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  expect(calls[0]?.signal.aborted).toBe(false);
  calls[0]?.finish('value');
  expect(await stayed).toBe('value');
});

test('the last caller that leaves aborts the work, and the next caller starts again', async () => {
  const flights = new SingleFlight<string, string>();
  const { calls, work } = manualWork();
  const leaver = new AbortController();
  const left = flights.run('a', work, leaver.signal);
  leaver.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  expect(calls[0]?.signal.aborted).toBe(true);
  const next = flights.run('a', work);
  calls[0]?.finish('stale');
  calls[1]?.finish('fresh');
  expect(await next).toBe('fresh');
});

test('a caller whose signal is already aborted starts no work', async () => {
  const flights = new SingleFlight<string, string>();
  const { calls, work } = manualWork();
  await expect(flights.run('a', work, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
  expect(calls).toHaveLength(0);
});
