import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Sqlite } from '../../../src/util/sqlite.ts';
import { expectSound } from './invariants.ts';
import { HOME, opened, put } from './opened.ts';

test('a data directory of a version that counted equal contents once counts every file after its upgrade', async () => {
  const storage = await opened();
  for (const path of ['/a', '/b', '/c']) await put(storage, path, 'x'.repeat(400));
  await put(storage, '/d', 'y'.repeat(50));
  await storage.remove(HOME, '/d');
  await storage.close();
  const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  old.exec(
    'ALTER TABLE holding DROP COLUMN files; UPDATE namespace SET used_bytes = 450; PRAGMA user_version = 6',
  );
  old.close();
  const upgraded = await opened({ dataDirectory: storage.dataDirectory });
  expect(upgraded.usage(HOME).usedBytes).toBe(1250);
  await upgraded.close();
  expectSound(storage.dataDirectory);
});
