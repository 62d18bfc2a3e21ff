import { describe } from 'vitest';
import { filesUnderTest, type OpenedFiles } from './files-under-test.ts';
import { readingContract } from './reading.contract.ts';
import { treeContract } from './tree.contract.ts';
import { writingContract } from './writing.contract.ts';

/** What every `Files` does, whatever is behind it: each promise of `vfs/files.ts`. */
export function filesContract(name: string, open: () => Promise<OpenedFiles>): void {
  describe(`Files: ${name}`, () => {
    const drive = filesUnderTest(open);
    readingContract(drive);
    writingContract(drive);
    treeContract(drive);
  });
}
