import { describe, expect, test } from 'vitest';
import { bodyOf } from '../../support/bytes.ts';
import { path } from '../../support/paths.ts';
import { historyContract } from './history.contract.ts';
import { linksContract } from './links.contract.ts';
import { readingContract } from './reading.contract.ts';
import {
  ANY,
  filled,
  type OpenedRemote,
  type RemoteUnderTest,
  remoteUnderTest,
} from './remote-under-test.ts';
import { searchContract } from './search.contract.ts';
import { treeContract } from './tree.contract.ts';
import { writeContract } from './write.contract.ts';

/** Tests an implementation of `Remote`; `more` adds tests for calls that only some have. */
export function remoteContract(
  name: string,
  open: () => Promise<OpenedRemote>,
  more: (drive: RemoteUnderTest) => void = () => {},
): void {
  describe(`Remote: ${name}`, () => {
    const drive = remoteUnderTest(open);
    readingContract(drive);
    writeContract(drive);
    treeContract(drive);
    linksContract(drive);
    searchContract(drive);
    historyContract(drive);
    more(drive);

    test('quota counts the bytes of a new file', async () => {
      const before = await drive.remote.quota();
      await drive.remote.write(path(`${await drive.newFolder()}/f`), bodyOf(filled(100_000, 7)), ANY);
      const after = await drive.remote.quota();
      expect(after?.allocatedBytes).toBeGreaterThan(after?.usedBytes ?? 0);
      expect((after?.usedBytes ?? 0) - (before?.usedBytes ?? 0)).toBeGreaterThanOrEqual(100_000);
    });
  });
}
