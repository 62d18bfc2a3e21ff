import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import { ROOT } from '../../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/a.txt'), 'a');
  drive = await MemoryDrive.open(remote);
  await drive.files.list(ROOT);
});

afterEach(() => drive.close());

async function feedFails(): Promise<void> {
  remote.breakFeed();
  while (drive.files.status().isFeedAlive) await turn();
}

/** Advances the clock in steps of one second, so that pending calls run in between. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    await drive.clock.advance(Math.min(1_000, ms - passed));
    await turn(5);
  }
}

describe('the change feed', () => {
  test('while the change feed is down, cached listings are served for 10 seconds and fetched after that', async () => {
    await feedFails();
    remote.putFile(at('/b.txt'), 'b');
    await drive.clock.advance(9_999);
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    await drive.clock.advance(1);
    expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt']);
    remote.putFile(at('/c.txt'), 'c');
    await drive.clock.advance(10_000);
    expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt', 'c.txt']);
  });

  test('the change feed reports missed changes when it is back, and listings are served from the cache again', async () => {
    await feedFails();
    const theirs = remote.putFile(at('/a.txt'), 'changed');
    remote.isReachable = true;
    await drive.clock.advance(1_000);
    await drive.untilAlive();
    expect(await drive.files.stat(at('/a.txt'))).toEqual(theirs);
    const before = remote.questions;
    await drive.clock.advance(60_000);
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    expect(remote.questions).toBe(before);
  });

  test('an older state reported by the change feed after an outage does not replace a write of ours', async () => {
    await feedFails();
    remote.putFile(at('/a.txt'), 'theirs');
    const { entry } = await drive.write(at('/a.txt'), 'ours');
    // Long enough for the record of our own write to expire.
    await drive.clock.advance(500);
    remote.pageEntries = 1;
    remote.isReachable = true;
    const alive = drive.clock.advance(10_000);
    for (let step = 0; step < 30; step++) {
      expect(await drive.files.stat(at('/a.txt'))).toEqual(entry);
      await turn();
    }
    await alive;
  });

  test('an outage of the change feed is logged once, and its retries back off', async () => {
    await feedFails();
    const before = remote.count('changesSince', 'awaitChange', 'latestCursor');
    await pass(600_000);
    expect(drive.warnings).toEqual(['the change feed is down']);
    expect(remote.count('changesSince', 'awaitChange', 'latestCursor') - before).toBeLessThan(20);
    expect(remote.count('changesSince', 'awaitChange', 'latestCursor') - before).toBeGreaterThan(5);
  });

  test.each(['reset', 'bad-request', 'not-found', 'not-folder'] as const)(
    'a cursor that the service answers with %s empties the cache and is replaced',
    async (failure) => {
      remote.failNext('changesSince', failure);
      remote.holdFeed();
      remote.putFile(at('/b.txt'), 'b');
      remote.releaseFeed();
      while (drive.files.status().isFeedAlive) await turn();
      expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt']);
      await drive.clock.advance(1_000);
      await drive.untilAlive();
      expect(remote.count('latestCursor')).toBe(2);
      remote.putFile(at('/c.txt'), 'c');
      await turn(10);
      expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt', 'c.txt']);
    },
  );

  test('while the root of the drive is gone the change feed retries ever more seldom, and follows the new root', async () => {
    remote.goAway('not-found');
    while (drive.files.status().isFeedAlive) await turn();
    const before = remote.count('changesSince', 'awaitChange', 'latestCursor');
    await pass(600_000);
    expect(remote.count('changesSince', 'awaitChange', 'latestCursor') - before).toBeLessThan(20);
    expect(drive.warnings).toEqual(['the change feed is down']);
    remote.putFile(at('/b.txt'), 'b');
    remote.back();
    await pass(60_000);
    await drive.untilAlive();
    expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt']);
    remote.putFile(at('/c.txt'), 'c');
    await turn(10);
    expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt', 'c.txt']);
  });

  test.each(['reset', 'not-found'] as const)(
    'a position is given although the service answers the cursor of the change feed with %s',
    async (failure) => {
      remote.holdFeed();
      remote.failNext('changesSince', failure);
      const { changeLog } = drive.files;
      expect(await changeLog.position(ROOT, new AbortController().signal)).toMatch(/^\d+$/);
      remote.releaseFeed();
    },
  );

  test('a drive opens while the service cannot be reached, and follows changes once it can', async () => {
    await drive.close();
    remote = new MemoryRemote();
    remote.breakFeed();
    drive = await MemoryDrive.open(remote);
    await drive.write(at('/a.txt'), 'a');
    expect(await drive.names(ROOT)).toEqual(['a.txt']);
    remote.putFile(at('/b.txt'), 'b');
    remote.isReachable = true;
    await pass(60_000);
    await drive.untilAlive();
    expect(await drive.names(ROOT)).toEqual(['a.txt', 'b.txt']);
  });

  test('twenty changes of ours and one from elsewhere within 600 ms cost one call of the change feed', async () => {
    await drive.close();
    remote = new MemoryRemote();
    drive = await MemoryDrive.open(remote, { feedEveryMs: 600 });
    await drive.files.list(ROOT);
    const asked = vi.spyOn(remote, 'changesSince');
    for (let number = 0; number < 20; number += 1) {
      await drive.write(at(`/${number}.txt`), 'ours');
      await turn(5);
    }
    remote.putFile(at('/theirs.txt'), 'theirs');
    await drive.clock.advance(599);
    await turn(5);
    expect(asked).toHaveBeenCalledTimes(0);
    await drive.clock.advance(1);
    await turn(5);
    expect(asked).toHaveBeenCalledTimes(1);
    expect(await drive.names(ROOT)).toContain('theirs.txt');
    // After a quiet interval a change is fetched at once.
    await drive.clock.advance(600);
    remote.putFile(at('/later.txt'), 'theirs');
    await turn(5);
    expect(await drive.names(ROOT)).toContain('later.txt');
  });

  test('a listing that was in flight when the change feed restarted is not cached', async () => {
    await feedFails();
    await drive.clock.advance(10_000);
    const gate = remote.holdNext('list', 'end');
    const early = drive.files.list(ROOT);
    await gate.reached;
    remote.failNext('changesSince', new ApiError('reset', 'the cursor is too old'));
    remote.isReachable = true;
    await pass(120_000);
    await drive.untilAlive();
    remote.holdFeed();
    gate.release();
    await early;
    const before = remote.questions;
    await drive.files.list(ROOT);
    expect(remote.questions).toBe(before + 1);
  });
});
