import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Retries, waitSecondsIn, waitToRetry } from '../../../src/webapp/retries.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Waits for a retry. The returned function tells whether the wait is over. */
function waitFor(retry: number, waitSeconds: number, network = new EventTarget()): () => boolean {
  let isOver = false;
  void waitToRetry(retry, waitSeconds, network).then(() => {
    isOver = true;
  });
  return () => isOver;
}

test.each([
  [0, 0, 1_000],
  [0, 30, 30_000],
  [5, 1, 30_000],
  [0, 86_400, 600_000],
])('retry %d after an answer that wants %d seconds to pass comes after %d ms', async (retry, seconds, ms) => {
  const isOver = waitFor(retry, seconds);
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(isOver()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isOver()).toBe(true);
});

test.each([
  ['at once without an answer', 0, true],
  ['no earlier if an answer wants 30 seconds to pass', 30, false],
])('a retry comes %s when the computer is online again', async (_, seconds, isEarly) => {
  const network = new EventTarget();
  const isOver = waitFor(3, seconds, network);
  network.dispatchEvent(new Event('online'));
  await vi.advanceTimersByTimeAsync(0);
  expect(isOver()).toBe(isEarly);
});

/** Asks for the next retry after tries with these numbers of bytes that have arrived. Returns the answers. */
function retriesAfter(...receivedBytes: readonly number[]): readonly (number | undefined)[] {
  const retries = new Retries();
  return receivedBytes.map((bytes) => retries.next(bytes));
}

const UNTIL_GIVEN_UP = [0, 1, 2, 3, 4, 5, 6, 7, 8, undefined];

test('a file is sent again nine times if nothing of it arrives', () => {
  expect(retriesAfter(...Array<number>(10).fill(0))).toEqual(UNTIL_GIVEN_UP);
});

test('a file is never given up while each try brings one more byte', () => {
  expect(retriesAfter(...Array(100).keys())).toEqual(Array<number>(100).fill(0));
});

test('a file that began again is not given up while each try brings one more byte', () => {
  expect(retriesAfter(99, ...Array(99).keys())).toEqual([0, ...Array<number>(99).fill(1)]);
});

test('a file whose bytes davgate loses again and again is given up at the ninth loss', () => {
  const losses = Array<readonly [number, number]>(9).fill([16, 0]).flat();
  const retries = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8];
  expect(retriesAfter(...losses)).toEqual([...retries, undefined]);
});

test.each([
  [null, 0],
  ['', 0],
  ['30', 30],
  ['-1', 0],
  ['Wed, 21 Oct 2026 07:28:00 GMT', 0],
])('the field Retry-After: %j makes a retry wait %d seconds', (field, seconds) => {
  expect(waitSecondsIn(field)).toBe(seconds);
});
