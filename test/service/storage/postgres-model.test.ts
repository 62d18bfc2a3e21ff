import { expect, test } from 'vitest';
import { openPool } from '../../../src/service/postgres/connect.ts';
import { checkSharedStorage } from '../../../src/service/storage/check/shared/shared-check.ts';
import { silentLog } from '../../../src/util/log.ts';
import { expectModel } from './model-run.ts';
import { openedShared, postgresTests, type SharedPlace } from './opened-shared.ts';

const { newPlace } = postgresTests();

/** Expects a check to find nothing. */
async function expectSoundPlace({ url, folder }: SharedPlace): Promise<void> {
  const pool = openPool(url, silentLog);
  try {
    for await (const damage of checkSharedStorage({ pool, blocks: { folder } }, () => {}))
      expect(damage).toBeUndefined();
  } finally {
    await pool.end();
  }
}

test.each([
  [200, 'at once'],
  [1, 'row by row, long after'],
])(
  'random operations on two storages that share a database have the outcomes of a model with %i rows of a removed or relocated tree a transaction, and leave nothing that a check tells of: %s',
  async (rowsMax) => {
    await expectModel(async () => {
      const place = await newPlace();
      const open = async () =>
        (await openedShared(place, { removedRowsMax: rowsMax, stagedRowsMax: rowsMax })).storage;
      return { open: async () => [await open(), await open()], end: () => expectSoundPlace(place) };
    });
  },
);
