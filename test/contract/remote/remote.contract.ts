import { describe, expect, test } from 'vitest';
import { path } from '../../support/paths.ts';
import { linksContract } from './links.contract.ts';
import { readingContract } from './reading.contract.ts';
import { ANY, filled, type OpenedRemote, remoteUnderTest } from './remote-under-test.ts';
import { treeContract } from './tree.contract.ts';
import { uploadsContract } from './uploads.contract.ts';

/** What every `Remote` does, whatever is behind it. */
export function remoteContract(name: string, open: () => Promise<OpenedRemote>): void {
  describe(`Remote: ${name}`, () => {
    const drive = remoteUnderTest(open);
    readingContract(drive);
    uploadsContract(drive);
    treeContract(drive);
    linksContract(drive);

    test('space is counted', async () => {
      const before = await drive.remote.quota();
      await drive.remote.upload(path(`${await drive.room()}/f`), filled(100_000, 7), ANY);
      const after = await drive.remote.quota();
      expect(after?.allocatedBytes).toBeGreaterThan(after?.usedBytes ?? 0);
      expect((after?.usedBytes ?? 0) - (before?.usedBytes ?? 0)).toBeGreaterThanOrEqual(100_000);
    });
  });
}
