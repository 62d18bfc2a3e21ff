import { describe, expect, test } from 'vitest';
import { ageMs, elapsedMs, instantIn, momentNow, remainingMs, systemClock } from '../../../src/util/clock.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;

describe('ages and deadlines', () => {
  test.each([-HOUR_MS, HOUR_MS])('a wall clock moved by %i ms changes no wait and no duration', (step) => {
    const clock = new ManualClock();
    const start = clock.instant();
    const end = instantIn(clock, 5_000);
    clock.stepWall(step);
    expect([elapsedMs(clock, start), remainingMs(clock, end)]).toEqual([0, 5_000]);
  });

  test('an age counts the time of a suspension, and a wall clock set back does not shorten it', async () => {
    const clock = new ManualClock();
    const asleep = momentNow(clock);
    clock.stepWall(HOUR_MS);
    expect(ageMs(clock, asleep)).toBe(HOUR_MS);
    const setBack = momentNow(clock);
    clock.stepWall(-HOUR_MS);
    await clock.advance(1_000);
    expect(ageMs(clock, setBack)).toBe(1_000);
  });
});

test('a sleep longer than a timer of Node can last does not end at once', async () => {
  const over = new AbortController();
  let isAwake = false;
  const sleep = systemClock.sleep(2 ** 31 + 1, over.signal).then(
    () => {
      isAwake = true;
    },
    () => {},
  );
  await systemClock.sleep(50);
  expect(isAwake).toBe(false);
  over.abort();
  await sleep;
});

test('ages of the system clock are whole milliseconds, so that due times can be stored as integers', async () => {
  const start = systemClock.instant();
  const ages = new Set<number>();
  while (ages.size < 5) {
    ages.add(elapsedMs(systemClock, start));
    await systemClock.sleep(1);
  }
  expect([...ages].every(Number.isInteger)).toBe(true);
});
