import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Path } from '../../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await MemoryDrive.open(undefined, { writeBack: true });
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('what somebody else did meanwhile', () => {
  /** A write that waits while `meanwhile` happens at the service. */
  async function conflict(path: Path, text: string, meanwhile: () => void): Promise<void> {
    const gate = remote.holdNext('upload', 'begin');
    await drive.put(path, text);
    await gate.reached;
    meanwhile();
    gate.release();
    await drive.untilLanded();
  }

  const copies = () => remote.paths.filter((path) => path.includes('conflicted copy')) as Path[];

  test('a new file of the same name: both are kept', async () => {
    await conflict(at('/report.final.odt'), 'ours', () => remote.putFile(at('/report.final.odt'), 'theirs'));
    expect(remote.text(at('/report.final.odt'))).toBe('theirs');
    expect(copies()).toEqual(['/report.final (conflicted copy 2026-01-01 00.00.00).odt']);
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    expect(await drive.text(at('/report.final.odt'))).toBe('theirs');
  });

  test('another version: both are kept, and what is written next replaces theirs', async () => {
    await drive.put(at('/a'), 'base');
    await drive.untilLanded();
    await conflict(at('/a'), 'ours', () => remote.putFile(at('/a'), 'theirs'));
    expect(remote.text(at('/a'))).toBe('theirs');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
    await drive.put(at('/a'), 'next');
    await drive.untilLanded();
    expect(remote.text(at('/a'))).toBe('next');
  });

  test('the same content: it is one file', async () => {
    await conflict(at('/a'), 'same', () => remote.putFile(at('/a'), 'same'));
    expect(remote.paths).toEqual(['/a']);
  });

  test('a folder of that name: both are kept', async () => {
    await conflict(at('/a'), 'ours', () => remote.putFolder(at('/a')));
    expect(remote.entryAt(at('/a'))?.kind).toBe('folder');
    expect(copies().map((path) => remote.text(path))).toEqual(['ours']);
  });

  test('a deletion: the edit outlives it', async () => {
    await drive.put(at('/a'), 'base');
    await drive.untilLanded();
    const gate = remote.holdNext('upload', 'begin');
    await drive.put(at('/a'), 'edit');
    await gate.reached;
    remote.delete(at('/a'));
    gate.release();
    await drive.clock.during(drive.untilLanded());
    expect(remote.text(at('/a'))).toBe('edit');
  });

  test('the folder has gone: the write is kept in the lost-and-found folder', async () => {
    await drive.files.createFolder(at('/f'));
    await drive.files.hold(at('/f/a'), 60_000);
    const gate = remote.holdNext('upload', 'begin');
    await drive.put(at('/f/b'), 'precious');
    await gate.reached;
    remote.failNext('upload', 'conflict-ancestor');
    gate.release();
    while (drive.files.depth().files > 1) await turn();
    const [only] = drive.lost();
    expect(only?.text).toBe('precious');
    expect(only?.reason).toContain('/f/b');
    expect(await drive.files.stat(at('/f/b'))).toBeUndefined();
    expect(drive.files.depth()).toMatchObject({ files: 1, lostFiles: 1 });
  });
});
