import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStorage } from '../../src/service/storage/open.ts';
import { silentLog } from '../../src/util/log.ts';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { expectSound } from '../service/storage/invariants.ts';
import { toVersion11 } from '../service/storage/old-schema.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { matchOutput, spawnProgram, startServiceProgram, temporaryDirectory } from '../support/program.ts';

/** Number of folders in the directory that is upgraded: more than one step of the upgrade. */
const FOLDERS = 80_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.remove());

/** Makes a data directory of version 3, in which names have no index. */
async function makeOld(dataDirectory: string): Promise<void> {
  const storage = await openStorage({ dataDirectory, clock: new ManualClock(), log: silentLog });
  await storage.createNamespace('home', 2 ** 40);
  await storage.close();
  const old = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.exec(`
    INSERT INTO entry (ns, parent, name_key, name, path, id, seq)
      WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${FOLDERS})
      SELECT 1, '/', 'folder ' || n, 'Folder ' || n, '/Folder ' || n, 'id:' || n, n FROM numbers;
    UPDATE setting SET value = ${FOLDERS} WHERE name = 'tick';
    ALTER TABLE holding DROP COLUMN files; DROP TABLE removal; DROP TABLE staging; DROP TABLE word; DROP INDEX entry_name;
    DROP INDEX deletion_name; PRAGMA user_version = 3`);
  old.close();
}

test('SIGTERM in the middle of an upgrade ends davgate service with exit code 0, and the next start completes it', async () => {
  const data = join(directory.path, 'service');
  await makeOld(data);
  const { child, output } = spawnProgram(['service', '--listen', '127.0.0.1:0', '--data', data]);
  const ended = once(child, 'close');
  await matchOutput(child, output, /upgrading the keys of names: 50,000 of 80,000 rows/);
  child.kill('SIGTERM');
  expect(await ended, output()).toEqual([0, null]);
  const next = await startServiceProgram(data);
  expect(next.output()).toMatch(/upgrading the index: 80,000 of 80,000 names/);
  expect(await next.stop()).toBe(0);
  expectSound(data);
});
