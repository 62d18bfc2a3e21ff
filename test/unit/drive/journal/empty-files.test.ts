import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('empty files', () => {
  test('an empty file waits for its body and costs no commit of its own', async () => {
    await drive.put(at('/a'), '');
    await turn(20);
    expect(remote.count('write')).toBe(0);
    await drive.put(at('/a'), 'body');
    await drive.untilLanded();
    expect(remote.count('write')).toBe(1);
    expect(remote.text(at('/a'))).toBe('body');
  });

  test('an empty file is sent when no body has come', async () => {
    await drive.put(at('/a'), '');
    await drive.clock.advance(5_000);
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('');
  });

  test('an empty file waits for as long as it is locked', async () => {
    const { clock } = drive;
    const placeholder = await drive.files.keepPlaceholder(at('/a'), 60_000);
    expect(placeholder.created).toBe(true);
    expect(await drive.files.keepPlaceholder(at('/a'), 120_000)).toEqual({ ...placeholder, created: false });
    await clock.advance(110_000);
    expect(remote.paths).toEqual([]);
    await drive.files.commitPlaceholder(at('/a'));
    await drive.untilLanded();
    expect(remote.paths).toEqual(['/a']);
  });

  test('an empty file gives way to a file written elsewhere', async () => {
    await drive.put(at('/a'), '');
    remote.putFile(at('/a'), 'theirs');
    await drive.clock.advance(5_000);
    await drive.untilLanded();
    expect([remote.paths, remote.text(at('/a'))]).toEqual([['/a'], 'theirs']);
  });
});
