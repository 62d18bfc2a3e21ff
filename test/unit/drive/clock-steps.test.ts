import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bodyOf, MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../support/memory-remote.ts';

const HOUR_MS = 3_600_000;

let drive: MemoryDrive;
let remote: MemoryRemote;

async function open(settings: Parameters<typeof MemoryDrive.open>[1]): Promise<void> {
  drive = await MemoryDrive.open(undefined, settings);
  ({ remote } = drive);
}

afterEach(() => drive.close());

/** A time shorter than the hour that the wall clock is moved by, in ms; every timer of these tests is due within it. */
const WHILE_MS = 15_000;

describe('writes sent at once', () => {
  beforeEach(() => open({ feedEveryMs: 2_000 }));

  test('a change made elsewhere after the wall clock is set back an hour is seen within 15 seconds', async () => {
    remote.putFile(at('/a'), 'one');
    await drive.clock.advance(WHILE_MS);
    expect(await drive.text(at('/a'))).toBe('one');
    drive.clock.stepWall(-HOUR_MS);
    remote.putFile(at('/a'), 'two');
    await turn(20);
    await drive.clock.advance(WHILE_MS);
    while ((await drive.text(at('/a'))) !== 'two') await turn();
  });

  test('an empty file without a body is committed within 15 seconds after the wall clock is set back an hour', async () => {
    await drive.files.write(at('/a'), bodyOf(), { mode: { if: 'any' } });
    drive.clock.stepWall(-HOUR_MS);
    await drive.clock.advance(WHILE_MS);
    while (drive.files.status().placeholders > 0) await turn();
    expect(remote.paths).toEqual(['/a']);
  });

  test('an empty file written again after the wall clock is set back an hour is committed within 15 seconds', async () => {
    const empty = () => drive.files.write(at('/a'), bodyOf(), { mode: { if: 'any' } });
    await empty();
    drive.clock.stepWall(-HOUR_MS);
    await empty();
    await drive.clock.advance(WHILE_MS);
    while (drive.files.status().placeholders > 0) await turn();
    expect(remote.paths).toEqual(['/a']);
  });

  test('a read after the machine was suspended returns a change made meanwhile, although the long poll still hangs', async () => {
    remote.putFile(at('/a'), 'one');
    await drive.clock.advance(WHILE_MS);
    expect(await drive.text(at('/a'))).toBe('one');
    remote.holdFeed();
    remote.putFile(at('/a'), 'two');
    drive.clock.stepWall(HOUR_MS);
    expect(await drive.text(at('/a'))).toBe('two');
  });
});

describe('writes through the journal', () => {
  beforeEach(() => open({ writeBack: true }));

  test('a failed journal write is sent again within 15 seconds after the wall clock is set back an hour', async () => {
    remote.failNext('write', 'unavailable');
    await drive.put(at('/a'), 'x');
    while (drive.warnings.length === 0) await turn();
    drive.clock.stepWall(-HOUR_MS);
    await drive.clock.advance(WHILE_MS);
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('x');
  });

  test('an empty file in the journal is sent within 15 seconds after the wall clock is set back an hour', async () => {
    await drive.put(at('/a'), '');
    drive.clock.stepWall(-HOUR_MS);
    await drive.clock.advance(WHILE_MS);
    await drive.untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });
});
