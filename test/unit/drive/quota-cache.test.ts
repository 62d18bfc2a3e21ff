import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryDrive } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.allocatedBytes = 1_000;
  remote.putFile(at('/a'), '0123456789');
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

test('the free space is fetched once a minute, and writes and removals are counted in between', async () => {
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 10, availableBytes: 990 });
  await drive.write(at('/b'), '01234');
  await drive.write(at('/a'), '0');
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 6, availableBytes: 994 });
  await drive.files.remove(at('/b'), { recoverable: false });
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 1, availableBytes: 999 });
  expect(remote.count('quota')).toBe(1);
  remote.putFile(at('/c'), '0123');
  await drive.clock.advance(60_000);
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 5, availableBytes: 995 });
  expect(remote.count('quota')).toBe(2);
});

test('the free space of an account over its limit is 0', async () => {
  remote.allocatedBytes = 5;
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 10, availableBytes: 0 });
});

test('the free space of an account without a limit is unknown, and fetched once', async () => {
  remote.allocatedBytes = undefined;
  expect(await drive.files.freeSpace()).toBeUndefined();
  expect(await drive.files.freeSpace()).toBeUndefined();
  expect(remote.count('quota')).toBe(1);
});

test('the free space is unknown and a warning is logged while the service cannot be reached', async () => {
  remote.failNext('quota', 'offline');
  expect(await drive.files.freeSpace()).toBeUndefined();
  expect(drive.warnings).toEqual(['cannot ask the storage service for the free space']);
  await drive.clock.advance(60_000);
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 10, availableBytes: 990 });
});

test('a client that leaves while the free space is fetched gets its error at once, and the next client gets the answer', async () => {
  const gate = remote.holdNext('quota', 'begin');
  const abort = new AbortController();
  const asking = drive.files.freeSpace(abort.signal);
  await gate.reached;
  abort.abort(new Error('gone'));
  await expect(asking).rejects.toThrow('gone');
  expect(await drive.files.freeSpace()).toEqual({ usedBytes: 10, availableBytes: 990 });
});
