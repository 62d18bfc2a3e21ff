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

describe('a file whose revision somebody else has removed for good, unknown to us yet', () => {
  const known: Path = at('/a');

  beforeEach(async () => {
    remote.putFile(known, 'one');
    await drive.untilAlive();
    expect(await drive.files.stat(known)).toBeDefined();
    remote.holdFeed();
    await remote.remove(known, { permanent: true });
  });

  test('is not called missing when another one is there, which is read next', async () => {
    remote.putFile(known, 'two');
    await expect(drive.text(known)).rejects.toMatchObject({ fault: 'busy' });
    expect(await drive.text(known)).toBe('two');
  });

  test('is missing when the service says so', async () => {
    await expect(drive.text(known)).rejects.toMatchObject({ fault: 'not-found' });
    expect(await drive.files.stat(known)).toBeUndefined();
  });
});

test('a folder that goes while a walk is on its way to it does not make the top of the walk missing', async () => {
  remote.putFile(at('/top/sub/x'));
  remote.putFile(at('/top/y'));
  await drive.files.list(at('/top'));
  remote.holdFeed();
  remote.delete(at('/top/sub'));
  const seen: string[] = [];
  for await (const { folder } of drive.files.walk(at('/top'))) seen.push(folder.path);
  expect(seen).toEqual(['/top']);
});
