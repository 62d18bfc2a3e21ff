import { FileError } from '../../src/drive/errors.ts';
import type { History } from '../../src/drive/history.ts';

const refuse = async () => {
  throw new FileError('not-found', 'this drive has no former versions');
};

/** The history of a drive without former versions and without a trash. */
export const NO_HISTORY: History = {
  versions: refuse,
  version: refuse,
  async *read() {},
  restore: refuse,
  trash: async () => ({ items: [], leftOut: 0 }),
  undelete: refuse,
};
