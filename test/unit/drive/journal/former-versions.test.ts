import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import type { Gate } from '../../../support/call-script.ts';
import { faultOf } from '../../../support/fault-of.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
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

describe('while two large writes are being sent and a third waits', () => {
  const LARGE = 'x'.repeat(4 * 1024 * 1024 + 1);
  let gates: Gate[];

  beforeEach(async () => {
    remote.putFile(at('/c'), 'old');
    gates = [remote.holdNext('write', 'begin'), remote.holdNext('write', 'begin')];
    for (const path of ['/x', '/y']) await drive.put(at(path), LARGE);
    for (const gate of gates) await gate.reached;
    await drive.put(at('/c'), LARGE);
  });

  test('a request for the versions of the third gets the write that supersedes it, which is sent even in a pause', async () => {
    const asked = history().versions(at('/c'));
    remote.failNext('write', 'unavailable');
    await drive.put(at('/z'), 'paused');
    while (drive.warnings.length === 0) await turn();
    await drive.put(at('/c'), 'two');
    expect((await asked).files.map(({ sizeBytes }) => sizeBytes)).toEqual([3, 3]);
    expect(remote.text(at('/c'))).toBe('two');
  });

  test('a request for the versions of the third is answered when the file is removed for good', async () => {
    const asked = faultOf(history().versions(at('/c')));
    const removed = drive.files.remove(at('/c'), { recoverable: false });
    for (const gate of gates) gate.release();
    await removed;
    expect(await asked).toBe('not-found');
  });

  test('a request for the versions of the third and a retry of it are answered when it is discarded', async () => {
    const id = (await drive.pendingIds()).at(-1) ?? '';
    const { pending } = drive.files;
    const waiting = [pending?.retry(id), history().versions(at('/c'))] as const;
    expect(await pending?.discard(id)).toBe(true);
    expect((await Promise.all(waiting))[1].files).toHaveLength(1);
    expect(remote.text(at('/c'))).toBe('old');
  });
});
