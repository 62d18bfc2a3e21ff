import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { openDocs } from '../../../support/docs-drive.ts';
import type { MemoryDrive } from '../../../support/memory-drive.ts';
import { at, type MemoryRemote } from '../../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  drive = await openDocs();
  ({ remote } = drive);
});

afterEach(() => drive.close());

describe('changes made elsewhere', () => {
  test('changes made elsewhere are visible without a call to the service', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    const theirs = remote.putFile(at('/docs/c.txt'), 'c');
    remote.delete(at('/Docs/a.txt'));
    remote.putFolder(at('/New'));
    const look = async () => {
      await drive.feedTold();
      expect(await drive.names(at('/Docs'))).toEqual(['b.txt', 'c.txt']);
      expect(await drive.files.stat(at('/Docs/c.txt'))).toEqual(theirs);
      expect(await drive.names(ROOT)).toEqual(['Docs', 'New']);
    };
    expect(await drive.questionsOf(look)).toEqual([]);
  });

  test('a folder moved elsewhere is found at its new path only', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    remote.rename(at('/Docs'), at('/Texts'));
    await drive.feedTold();
    expect(await drive.names(ROOT)).toEqual(['Texts']);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
    expect(await drive.names(at('/Texts'))).toEqual(['a.txt', 'b.txt']);
  });

  test('a file below a folder that a newer listing lacks is not found, even before the change feed reports it', async () => {
    await drive.files.stat(at('/Docs/a.txt'));
    remote.holdFeed();
    remote.delete(at('/Docs'));
    expect(await drive.names(ROOT)).toEqual([]);
    expect(await drive.files.stat(at('/Docs/a.txt'))).toBeUndefined();
  });

  test('the modification time of a folder changes when a file is created in it', async () => {
    await drive.files.list(ROOT);
    await drive.files.list(at('/Docs'));
    await drive.clock.advance(1_000);
    await drive.write(at('/Docs/c.txt'), 'c');
    expect(await drive.files.stat(at('/Docs'))).toMatchObject({ modifiedMs: drive.clock.now() });
  });
});
