import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { faultOf } from '../../../support/fault-of.ts';
import { bodyOf, MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('a journal that is full', () => {
  beforeEach(async () => {
    await drive.close();
    const journalLimits = { filesMax: 3, bytesMax: 100 };
    drive = await MemoryDrive.open(remote, { writeBack: true, journalLimits });
  });

  test('what does not fit waits for the service', async () => {
    const gate = remote.holdNext('upload', 'begin');
    await drive.put(at('/a'), 'x'.repeat(80));
    await gate.reached;
    const large = drive.put(at('/b'), 'y'.repeat(80));
    await turn(20);
    expect(await drive.files.stat(at('/b'))).toBeUndefined();
    gate.release();
    await large;
    expect(remote.text(at('/b'))).toBe('y'.repeat(80));
    await drive.untilLanded();
  });

  test('it may replace what is pending, under its condition', async () => {
    const { rev } = await drive.put(at('/a'), 'x');
    expect(await faultOf(drive.put(at('/a'), 'y'.repeat(200), { if: 'rev', rev: 'other' }))).toBe('changed');
    await drive.put(at('/a'), 'y'.repeat(200), { if: 'rev', rev });
    expect(remote.text(at('/a'))).toBe('y'.repeat(200));
    expect(await faultOf(drive.put(at('/a'), 'z'.repeat(200), { if: 'rev', rev }))).toBe('changed');
  });

  test('a body of unknown length that turns out too long is refused', async () => {
    const body = bodyOf('x'.repeat(60), 'y'.repeat(60));
    expect(await faultOf(drive.files.write(at('/a'), body, { mode: { if: 'any' } }))).toBe('no-space');
    expect(await drive.files.stat(at('/a'))).toBeUndefined();
    expect(drive.files.depth().files).toBe(0);
  });
});

test('a journal that takes no more sends what is left in it', async () => {
  for (let count = 0; count < 3; count++) remote.failNext('upload', 'offline');
  await drive.put(at('/a'), 'left');
  while (drive.warnings.length === 0) await turn();
  await drive.end();
  drive.use({ journalLimits: { filesMax: 0 } });
  await drive.start();
  expect(await drive.text(at('/a'))).toBe('left');
  await drive.clock.during(drive.untilLanded());
  await drive.put(at('/b'), 'through');
  expect([remote.text(at('/a')), remote.text(at('/b'))]).toEqual(['left', 'through']);
});
