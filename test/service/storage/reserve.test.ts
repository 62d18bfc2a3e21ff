import { expect, onTestFinished, test } from 'vitest';
import { localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { DiskReserve } from '../../../src/service/storage/blocks/reserve.ts';
import { Ticks } from '../../../src/service/storage/feed/ticks.ts';
import { SqliteCommitter } from '../../../src/service/storage/sqlite-committer.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { expectSoon } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { refusal } from './opened.ts';

function failure(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}

test('a removal succeeds on a full disk also while the reserve cannot be created', async () => {
  const database = new Sqlite(':memory:');
  onTestFinished(() => {
    database.close();
  });
  const clock = new ManualClock();
  database.exec('CREATE TABLE namespace (id INTEGER PRIMARY KEY, tick INTEGER)');
  const committer = new SqliteCommitter(database, new Ticks(database, clock), clock, () => {});
  let isFull = false;
  let giveUp = (_: Error) => {};
  const reserve = new DiskReserve(
    '/data',
    {
      ...localDisk,
      create: () => {
        isFull = true;
        return new Promise((_, reject) => {
          giveUp = reject;
        });
      },
      remove: async () => {
        isFull = false;
      },
    },
    committer,
  );
  const filled = refusal(reserve.fill());
  await expectSoon(() => isFull).toBe(true);
  const removed = refusal(
    reserve.commit(() => {
      if (isFull) throw failure('SQLITE_FULL');
    }),
  );
  // The commit finds the disk full and waits for the reserve, which then fails too.
  await new Promise((resolve) => setImmediate(resolve));
  giveUp(failure('ENOSPC'));
  expect([await filled, await removed]).toEqual(['ENOSPC: injected', 'done']);
});
