import { describe } from 'vitest';
import { filesUnderTest, type OpenedFiles } from './files-under-test.ts';
import { readingContract } from './reading.contract.ts';
import { treeContract } from './tree.contract.ts';
import { writingContract } from './writing.contract.ts';

/** Tests the promises of `vfs/files.ts` on an implementation of `Files`. */
export function filesContract(name: string, open: () => Promise<OpenedFiles>): void {
  describe(`Files: ${name}`, () => {
    const drive = filesUnderTest(open);
    readingContract(drive);
    writingContract(drive);
    treeContract(drive);
  });
}
