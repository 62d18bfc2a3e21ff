import { afterEach, beforeEach, expect, test } from 'vitest';
import { elapsedMs } from '../../../src/util/clock.ts';
import { MemoryDrive, turn } from '../../support/memory-drive.ts';
import { at } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
beforeEach(async () => {
  drive = await MemoryDrive.open();
});
afterEach(() => drive.close());

test('a drive closes within 10 seconds while the service hangs, and commits its placeholder after the next start', async () => {
  const { clock, remote } = drive;
  await drive.files.keepPlaceholder(at('/a'), 3_600_000);
  const gate = remote.holdNext('write', 'begin');
  const start = clock.instant();
  await clock.during(drive.end());
  expect(elapsedMs(clock, start)).toBeLessThanOrEqual(10_000);
  drive.kill();
  gate.release();
  await drive.start();
  while (drive.files.status().placeholders > 0) await turn();
  expect(remote.paths).toEqual(['/a']);
});
