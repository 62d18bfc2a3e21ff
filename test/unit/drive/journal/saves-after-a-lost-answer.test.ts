import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
  await drive.put(at('/a'), 'v1');
  await drive.untilLanded();
});

afterEach(() => drive.close());

/** Commits `text` without an answer, then fails the next `failures` tries. */
async function saveWithLostAnswer(text: string, failures = 3): Promise<void> {
  remote.failNext('write', 'offline', { late: true });
  for (let count = 0; count < failures; count++) remote.failNext('write', 'offline');
  await drive.put(at('/a'), text);
  while (drive.warnings.length === 0) await turn();
  expect(remote.text(at('/a'))).toBe(text);
}

async function restart(): Promise<void> {
  drive.kill();
  await drive.start();
}

describe('saves that follow one whose answer was lost', () => {
  test('saves after a lost answer leave the newest content and no conflicted copy', async () => {
    await saveWithLostAnswer('v2');
    for (let version = 3; version <= 10; version++) {
      await drive.put(at('/a'), `v${version}`);
      await drive.clock.advance(500);
    }
    expect(await drive.text(at('/a'))).toBe('v10');
    await drive.clock.during(drive.untilLanded());
    expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'v10']);
    expect(await drive.text(at('/a'))).toBe('v10');
  });

  test('saves after a lost answer leave no conflicted copy after restarts in between', async () => {
    await saveWithLostAnswer('v2', 6);
    for (let version = 3; version <= 8; version++) {
      await drive.put(at('/a'), `v${version}`);
      if (version % 2 === 0) await restart();
    }
    await drive.clock.during(drive.untilLanded());
    expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'v8']);
  });

  test('any number of saves after a lost answer wait as two writes', async () => {
    await saveWithLostAnswer('v2');
    for (let version = 3; version <= 10; version++) await drive.put(at('/a'), `v${version}`);
    expect(drive.files.depth().files).toBe(2);
    await drive.clock.during(drive.untilLanded());
  });

  test('saves after a lost answer keep a version that was written elsewhere', async () => {
    await saveWithLostAnswer('v2');
    remote.putFile(at('/a'), 'theirs');
    await drive.put(at('/a'), 'v3');
    await drive.clock.during(drive.untilLanded());
    expect(remote.text(at('/a'))).toBe('theirs');
    const copies = remote.paths.filter((path) => path.includes('conflicted copy'));
    expect(copies.map((path) => remote.text(at(path)))).toContain('v3');
  });
});
