import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Path } from '../../../src/util/path.ts';
import { MemoryDrive } from '../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../support/memory-remote.ts';

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  drive = await MemoryDrive.open(remote);
});

afterEach(() => drive.close());

describe('a cached file that was removed elsewhere', () => {
  const known: Path = at('/a');

  beforeEach(async () => {
    remote.putFile(known, 'one');
    await drive.untilAlive();
    expect(await drive.files.stat(known)).toBeDefined();
    remote.holdFeed();
    await remote.remove(known, { permanent: true });
  });

  test('a read of a file that was replaced by another one fails with busy, and the next read returns the new content', async () => {
    remote.putFile(known, 'two');
    await expect(drive.text(known)).rejects.toMatchObject({ fault: 'busy' });
    expect(await drive.text(known)).toBe('two');
  });

  test('a read of a file that was removed elsewhere fails with not-found, and a stat then finds nothing', async () => {
    await expect(drive.text(known)).rejects.toMatchObject({ fault: 'not-found' });
    expect(await drive.files.stat(known)).toBeUndefined();
  });
});

test('a folder removed during a walk is left out, and the walk still succeeds', async () => {
  remote.putFile(at('/top/sub/x'));
  remote.putFile(at('/top/y'));
  await drive.files.list(at('/top'));
  remote.holdFeed();
  remote.delete(at('/top/sub'));
  const seen: string[] = [];
  for await (const { folder } of drive.files.walk(at('/top'))) seen.push(folder.path);
  expect(seen).toEqual(['/top']);
});
