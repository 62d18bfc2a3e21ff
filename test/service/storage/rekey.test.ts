import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openStorage } from '../../../src/service/storage/open.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { expectSound } from './invariants.ts';
import { toVersion11 } from './old-schema.ts';
import { HOME, OWNER, opened, put, refusal, textAt } from './opened.ts';

const LETTERS = ['J̌', 'H̱', 'T̈', 'W̊', 'Y̊', 'Ϊ́', 'Ϋ́'];

test.each(LETTERS)('a file named %s is found by the path_lower in its metadata', async (letter) => {
  const storage = await opened();
  const { pathLower } = await put(storage, `/${letter}/${letter}.txt`, 'text');
  expect(await textAt(storage, pathLower)).toBe('text');
  expect(
    (await storage.list(OWNER, { path: `/${letter}`, recursive: false, includeDeleted: false }, 10)).entries,
  ).toHaveLength(1);
});

/** Rewrites the keys as the older version folded them: the letter and its mark as two code points. */
function makeOld(dataDirectory: string): void {
  const old = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.exec(`
    ALTER TABLE holding DROP COLUMN files; DROP TABLE removal; DROP TABLE staging; DROP TABLE word; DROP INDEX entry_name; DROP INDEX deletion_name;
    UPDATE entry SET parent = replace(parent, '/old/', '/j\u030c/'), name_key = iif(name_key = 'old', 'j\u030c', name_key),
      name = iif(name = 'old', 'J\u030c', name), path = replace(path, '/old', '/J\u030c');
    UPDATE revision SET parent = replace(parent, '/old/', '/j\u030c/'), name_key = iif(name_key = 'old', 'j\u030c', name_key),
      name = iif(name = 'old', 'J\u030c', name), path = replace(path, '/old', '/J\u030c');
    UPDATE deletion SET parent = replace(parent, '/old/', '/j\u030c/'), name_key = iif(name_key = 'old', 'j\u030c', name_key),
      name = iif(name = 'old', 'J\u030c', name), path = replace(path, '/old', '/J\u030c');
    PRAGMA user_version = 3`);
  old.close();
}

test('a data directory with older case folding keeps every file under its new key after its upgrade', async () => {
  const storage = await opened();
  await put(storage, '/old/old', 'in the folder');
  await put(storage, '/old/sub/deep', 'deep');
  await put(storage, '/old/gone', 'gone');
  await storage.remove(HOME, '/old/gone');
  await put(storage, '/\u01f0/other', 'under the key that the old one gets');
  const cursor = await storage.latestCursor(OWNER, { path: '', recursive: true, includeDeleted: false });
  await storage.close();
  makeOld(storage.dataDirectory);
  const upgraded = await openStorage({ ...storage, clock: new ManualClock(), log: silentLog });
  onTestFinished(() => upgraded.close());
  expect(await textAt(upgraded, '/\u01f0/other')).toBe('under the key that the old one gets');
  expect(await textAt(upgraded, '/J\u030c (1)/J\u030c')).toBe('in the folder');
  expect(await textAt(upgraded, '/\u01f0 (1)/sub/DEEP')).toBe('deep');
  const deletion = await upgraded.stat(HOME, '/\u01f0/gone', true);
  expect(deletion.kind).toBe('deleted');
  expect(await refusal(() => upgraded.listContinue(OWNER, cursor))).toBe('cursor/reset');
  const again = await upgraded.latestCursor(OWNER, { path: '', recursive: true, includeDeleted: false });
  expect((await upgraded.listContinue(OWNER, again)).entries).toEqual([]);
  await upgraded.close();
  expectSound(storage.dataDirectory);
});
