import { rm } from 'node:fs/promises';
import { test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { expectSound } from './invariants.ts';
import { expectModel } from './model-run.ts';
import { temporaryFolder } from './opened.ts';

test.each([
  [200, 'at once'],
  [3, 'in steps'],
  [1, 'row by row, long after'],
])(
  'random operations have the outcomes of a model with %i rows of a removed or relocated tree a transaction: %s',
  async (rowsMax) => {
    await expectModel(async () => {
      const dataDirectory = await temporaryFolder();
      const open = () =>
        openStorage({
          dataDirectory,
          clock: systemClock,
          log: silentLog,
          commitWaitMs: Number.POSITIVE_INFINITY,
          removedRowsMax: rowsMax,
          stagedRowsMax: rowsMax,
        });
      return {
        open: async () => [await open()],
        async end() {
          expectSound(dataDirectory);
          await rm(dataDirectory, { recursive: true });
        },
      };
    });
  },
);
