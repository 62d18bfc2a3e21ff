import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { checkStorage } from '../../../src/service/storage/check/storage-check.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { expectSound } from './invariants.ts';
import { toVersion11 } from './old-schema.ts';
import { HOME, opened, put, textAt } from './opened.ts';

test('an upgrade from a version that counted equal contents once counts every file', async () => {
  const storage = await opened();
  for (const path of ['/a', '/b', '/c']) await put(storage, path, 'x'.repeat(400));
  await put(storage, '/d', 'y'.repeat(50));
  await storage.remove(HOME, '/d');
  await storage.close();
  const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.exec(
    `ALTER TABLE holding DROP COLUMN files; UPDATE namespace SET used_bytes = 450;
     ALTER TABLE removal DROP COLUMN moved; DROP TABLE staging; PRAGMA user_version = 6`,
  );
  old.close();
  const upgraded = await opened({ dataDirectory: storage.dataDirectory });
  expect((await upgraded.usage(HOME)).usedBytes).toBe(1250);
  await upgraded.close();
  expectSound(storage.dataDirectory);
});

test('a check finds a data directory of version 8 sound, before and after its upgrade', async () => {
  const storage = await opened();
  await put(storage, '/a/b', 'x');
  await put(storage, '/a/c', 'x');
  await storage.remove(HOME, '/a/c');
  await storage.close();
  const old = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  toVersion11(old);
  old.exec('ALTER TABLE removal DROP COLUMN moved; DROP TABLE staging; PRAGMA user_version = 8');
  old.close();
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
  const upgraded = await opened({ dataDirectory: storage.dataDirectory });
  expect(await textAt(upgraded, '/a/b')).toBe('x');
  await upgraded.relocate(HOME, '/a', '/d', { copy: false, autorename: false });
  await upgraded.close();
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
  expectSound(storage.dataDirectory);
});

test('a check of a storage closed in the middle of a large move finds no damage', async () => {
  const steps = { stagedRowsMax: 2, removedRowsMax: 2 };
  const storage = await opened(steps);
  await Promise.all(Array.from({ length: 20 }, (_, index) => put(storage, `/a/${index}`, 'text')));
  const cut = storage.relocate(HOME, '/a', '/b', { copy: false, autorename: false }).catch(String);
  for (let turns = 0; turns < 8; turns++) await turn();
  await storage.close();
  expect(await cut).toContain('closed');
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
  const again = await opened({ ...steps, dataDirectory: storage.dataDirectory });
  await again.relocate(HOME, '/a', '/b', { copy: false, autorename: false });
  await again.close();
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
});

test('a check before the rows of a removed and a moved folder are cleared away finds no damage', async () => {
  const storage = await opened({ stagedRowsMax: 2, removedRowsMax: 2 });
  await Promise.all(Array.from({ length: 20 }, (_, index) => put(storage, `/a/b/${index}`, 'text')));
  await storage.remove(HOME, '/a/b');
  await storage.relocate(HOME, '/a', '/c', { copy: false, autorename: false });
  await storage.close();
  expect(await damagesOf(storage.dataDirectory)).toEqual([]);
  expectSound(storage.dataDirectory);
});

async function damagesOf(dataDirectory: string): Promise<string[]> {
  const damages: string[] = [];
  for await (const { what } of checkStorage({ dataDirectory }, () => undefined)) damages.push(what);
  return damages;
}
