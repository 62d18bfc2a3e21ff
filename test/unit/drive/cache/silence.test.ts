import { afterEach, beforeEach, expect, test } from 'vitest';
import { CallAvailability } from '../../../../src/api/caller.ts';
import { ChangeFeed } from '../../../../src/drive/cache/change-feed.ts';
import { OwnFeedProgress } from '../../../../src/drive/cache/feed-progress.ts';
import { Freshness } from '../../../../src/drive/cache/tree-cache.ts';
import { momentNow } from '../../../../src/util/clock.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

const HOUR_MS = 3_600_000;

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

test('a read after the machine slept returns changes made meanwhile, although the long poll still hangs', async () => {
  remote.putFile(at('/a'), 'one');
  await drive.untilAlive();
  expect(await drive.text(at('/a'))).toBe('one');
  remote.holdFeed();
  remote.putFile(at('/a'), 'two');
  remote.putFile(at('/b'));
  await drive.clock.advance(HOUR_MS);
  expect(await drive.text(at('/a'))).toBe('two');
  expect(await drive.names(at('/'))).toEqual(['a', 'b']);
});

test('the cache stays fresh for an hour while every long poll reports no change', async () => {
  const clock = new ManualClock();
  const freshness = new Freshness(clock, 10_000);
  const feed = new ChangeFeed({
    remote: {
      availability: new CallAvailability(clock),
      latestCursor: async () => 'c',
      changesSince: async () => ({ changes: [], cursor: 'c', hasMore: false }),
      async awaitChange(_cursor, timeoutMs, signal) {
        await clock.sleep(timeoutMs, signal);
        return false;
      },
    },
    progress: new OwnFeedProgress({ apply: async () => {}, reached() {}, reset() {} }, clock),
    clock,
    log: silentLog,
    freshness,
    everyMs: 0,
  });
  feed.start();
  await turn(5);
  const asked = momentNow(clock);
  await clock.advance(HOUR_MS);
  expect(freshness.isFresh(asked)).toBe(true);
  await feed.close();
});

test('a service whose long polls end at once is not polled again without a pause', async () => {
  const clock = new ManualClock();
  let polls = 0;
  const freshness = new Freshness(clock, 10_000);
  const feed = new ChangeFeed({
    remote: {
      availability: new CallAvailability(clock),
      latestCursor: async () => 'c',
      changesSince: async () => ({ changes: [], cursor: 'c', hasMore: false }),
      async awaitChange(_cursor, _timeoutMs, signal) {
        await turn();
        signal?.throwIfAborted();
        polls++;
        return false;
      },
    },
    progress: new OwnFeedProgress({ apply: async () => {}, reached() {}, reset() {} }, clock),
    clock,
    log: silentLog,
    freshness,
    everyMs: 0,
  });
  feed.start();
  await turn(100);
  expect(polls).toBe(1);
  await feed.close();
});

test('a change feed that never runs out of pages is declared down', async () => {
  const clock = new ManualClock();
  const warnings: string[] = [];
  let pages = 0;
  let isPolled = false;
  const freshness = new Freshness(clock, 10_000);
  const feed = new ChangeFeed({
    remote: {
      availability: new CallAvailability(clock),
      latestCursor: async () => 'c',
      // A feed that keeps reading reaches the last page, so the test fails instead of hanging.
      changesSince: async () => ({ changes: [], cursor: `c${pages++}`, hasMore: pages < 1_000 }),
      awaitChange() {
        isPolled = true;
        return new Promise(() => {});
      },
    },
    progress: new OwnFeedProgress({ apply: async () => {}, reached() {}, reset() {} }, clock),
    clock,
    log: { ...silentLog, warn: (event) => void warnings.push(event) },
    freshness,
    everyMs: 0,
  });
  feed.start();
  while (warnings.length === 0 && !isPolled) await turn();
  expect(warnings).toEqual(['the change feed is down']);
  expect(freshness.isAlive).toBe(false);
  await clock.untilSleeping();
  await feed.close();
});
