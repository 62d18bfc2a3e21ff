import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

/** Minimum time until the next scheduled try of a pending write, in ms. */
const NEXT_TRY_MS_MIN = 5_000;

/** Longer than any pause between two tries, in ms. */
const LONG_OUTAGE_MS = 600_000;

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
  await drive.files.list(at('/'));
});

afterEach(() => drive.close());

const names = (count: number) => Array.from({ length: count }, (_, index) => `/${index}`);

/** Makes `count` pending writes and waits until journal and change feed sleep at their longest retry interval. */
async function writesWait(count: number): Promise<void> {
  remote.goAway('offline');
  while (drive.files.status().isFeedAlive) await turn();
  for (const name of names(count)) await drive.put(at(name), 'x');
  const sleepers = count > 0 ? 2 : 1;
  const end = LONG_OUTAGE_MS + drive.clock.now();
  const isFarAway = () => drive.clock.sleeping >= sleepers && (drive.clock.nextMs ?? 0) >= NEXT_TRY_MS_MIN;
  while (drive.clock.now() < end || !isFarAway()) {
    await drive.clock.advance(1_000);
    await turn(20);
  }
}

/** Returns how long `work` takes by the drive's clock, in ms, after another call was answered. */
async function msAfterAnAnswer(work: () => Promise<void>): Promise<number> {
  const start = drive.clock.now();
  await remote.quota();
  await drive.clock.during(work());
  return drive.clock.now() - start;
}

test('pending writes are sent at once when the service answers any call after an outage', async () => {
  await writesWait(8);
  remote.back();
  expect(await msAfterAnAnswer(() => drive.untilLanded())).toBeLessThan(NEXT_TRY_MS_MIN);
  expect(remote.paths).toEqual(names(8));
});

test('the change feed is followed again at once when the service answers any call after an outage', async () => {
  await writesWait(0);
  remote.back();
  expect(await msAfterAnAnswer(() => drive.untilAlive())).toBeLessThan(NEXT_TRY_MS_MIN);
});

test('after an outage a few writes probe the service before all are sent', async () => {
  await writesWait(50);
  remote.back();
  for (let count = 0; count < 100; count++) remote.failNext('write', 'offline');
  const before = remote.count('write');
  expect(await msAfterAnAnswer(() => untilTried(before))).toBeLessThan(NEXT_TRY_MS_MIN);
  await turn(200);
  expect(remote.count('write') - before).toBeLessThanOrEqual(8);
});

async function untilTried(before: number): Promise<void> {
  while (remote.count('write') === before) await turn();
}

test('writes are tried every few seconds, and not more often, while the service answers reads only', async () => {
  await writesWait(1);
  remote.back();
  for (let count = 0; count < 100; count++) remote.failNext('write', 'unavailable');
  const before = remote.count('write');
  for (let second = 0; second < 60; second++) {
    await remote.quota();
    await drive.clock.untilSleeping();
    await drive.clock.advance(1_000);
  }
  const tries = remote.count('write') - before;
  expect(tries).toBeGreaterThanOrEqual(3);
  expect(tries).toBeLessThanOrEqual(8);
});
