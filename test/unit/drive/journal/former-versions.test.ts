import { afterEach, beforeEach, expect, test } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

const history = () => drive.files.history;

test('a pending write lands before the versions are listed, and is one of them', async () => {
  remote.putFile(at('/a'), 'old');
  await drive.put(at('/a'), 'pending');
  const { files, currentRev } = await history().versions(at('/a'));
  expect(files).toHaveLength(2);
  expect(currentRev).toBe(files[0]?.rev);
  expect(remote.text(at('/a'))).toBe('pending');
});

test('a pending write lands before an old version is restored over it, and stays among the versions', async () => {
  const old = remote.putFile(at('/a'), 'old');
  await drive.put(at('/a'), 'pending');
  await history().restore(at('/a'), old.rev);
  expect(await drive.text(at('/a'))).toBe('old');
  const { files } = await history().versions(at('/a'));
  expect(files.map(({ sizeBytes }) => sizeBytes)).toEqual([3, 7, 3]);
});

test('a version is not restored while a pending write of the file cannot land', async () => {
  const old = remote.putFile(at('/a'), 'old');
  // Once by itself, and once because the restore waits for it.
  for (let count = 0; count < 2; count++) remote.failNext('write', 'insufficient-space');
  await drive.put(at('/a'), 'pending');
  expect(await faultOf(history().restore(at('/a'), old.rev))).toBe('no-space');
  expect(await drive.text(at('/a'))).toBe('pending');
});

test('a name that a pending write has taken is not in the trash, and what was there is not brought back', async () => {
  await drive.put(at('/a'), 'old');
  await drive.files.remove(at('/a'), { recoverable: true });
  const gate = remote.holdNext('write', 'begin');
  await drive.put(at('/a'), 'new');
  expect((await history().trash(ROOT)).items).toEqual([]);
  const undeleted = faultOf(history().undelete(at('/a')));
  gate.release();
  expect(await undeleted).toBe('exists');
  expect(await drive.text(at('/a'))).toBe('new');
});
