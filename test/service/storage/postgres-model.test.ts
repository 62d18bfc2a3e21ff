import { test } from 'vitest';
import { expectModel } from './model-run.ts';
import { openedShared, postgresTests } from './opened-shared.ts';

const { newPlace } = postgresTests();

test.each([
  [200, 'at once'],
  [1, 'row by row, long after'],
])(
  'random operations on two storages that share a database have the outcomes of a model with %i rows of a removed or relocated tree a transaction: %s',
  async (rowsMax) => {
    await expectModel(async () => {
      const place = await newPlace();
      const open = async () =>
        (await openedShared(place, { removedRowsMax: rowsMax, stagedRowsMax: rowsMax })).storage;
      return { open: async () => [await open(), await open()], end: () => Promise.resolve() };
    });
  },
);
