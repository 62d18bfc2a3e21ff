import { afterEach, beforeEach, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

/** Writes `count` files, one every `gapMs`. */
async function writeFiles(count: number, gapMs: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    await drive.put(at(`/${index}`), 'x');
    await drive.clock.advance(gapMs);
    await turn(20);
  }
}

test('a write that comes alone is sent at once', async () => {
  await drive.put(at('/a'), 'x');
  await drive.untilLanded();
  await drive.clock.advance(20);
  await drive.put(at('/b'), 'x');
  await drive.untilLanded();
  expect(remote.paths).toEqual(['/a', '/b']);
});

test('the writes of a burst are sent 20 ms after the last of them', async () => {
  await writeFiles(10, 5);
  await drive.clock.advance(14);
  await turn(20);
  expect(remote.paths).toEqual(['/0']);
  await drive.clock.advance(1);
  await drive.untilLanded();
  expect(remote.paths.length).toBe(10);
});

test('the writes of a long burst are sent from its 500th millisecond on', async () => {
  await writeFiles(49, 10);
  expect(remote.paths).toEqual(['/0']);
  await writeFiles(2, 10);
  await drive.untilLanded();
  expect(remote.paths.length).toBe(49);
});

test('a drive that is closed during a burst has sent all writes', async () => {
  await writeFiles(10, 1);
  await drive.end();
  expect(remote.paths.length).toBe(10);
  await drive.start();
});
