import { join } from 'node:path';
import { expect, test } from 'vitest';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { expectSound } from './invariants.ts';
import { toVersion11 } from './old-schema.ts';
import { HOME, opened, put, refusal, textAt } from './opened.ts';

/** Makes a data directory of schema version 3 with a file. */
async function oldDirectory(): Promise<string> {
  const storage = await opened();
  await put(storage, '/Reports/annual report', 'text');
  await storage.remove(HOME, '/reports/annual report');
  await put(storage, '/Reports/annual report', 'text');
  await storage.close();
  const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.exec(`ALTER TABLE holding DROP COLUMN files; DROP TABLE removal; DROP TABLE staging; DROP TABLE word; DROP INDEX entry_name;
    DROP INDEX deletion_name; PRAGMA user_version = 3`);
  old.close();
  return storage.dataDirectory;
}

const REPORTS = [
  'upgrading the keys of names: 2 of 4 rows',
  'upgrading the keys of names: 4 of 4 rows',
  'upgrading the quota: 1 of 1 contents',
  'upgrading the index: 2 of 2 names',
  'upgrading the entries: 2 of 2 rows',
  ...[1, 2, 3, 4, 5].map((done) => `upgrading the entries: ${done} of 5 indexes`),
  'upgrading the revisions: 2 of 2 rows',
  'upgrading the files and folders: 2 of 2 rows',
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((done) => `upgrading the files and folders: ${done} of 8 indexes`),
];

test('each long step of an upgrade logs its progress and lets other events run after each report', async () => {
  const dataDirectory = await oldDirectory();
  const events: string[] = [];
  const info = (event: string) => {
    events.push(event);
    setImmediate(() => events.push('other events'));
  };
  await opened({ dataDirectory, log: { ...silentLog, info } });
  expect(events).toEqual(REPORTS.flatMap((report) => [report, 'other events']));
});

test.each(REPORTS)(
  'an upgrade that is stopped after "%s" changes nothing, and the next one completes',
  async (last) => {
    const dataDirectory = await oldDirectory();
    const info = (event: string) => {
      if (event === last) throw new Error('ended');
    };
    expect(await refusal(opened({ dataDirectory, log: { ...silentLog, info } }))).toBe('ended');
    const file = new Sqlite(join(dataDirectory, 'storage.sqlite'));
    expect(file.pragma('user_version', { simple: true })).toBe(3);
    file.close();
    const storage = await opened({ dataDirectory });
    expect(await textAt(storage, '/reports/annual report')).toBe('text');
    expect((await storage.usage(HOME)).usedBytes).toBe(4);
    await storage.close();
    expectSound(dataDirectory);
  },
);
