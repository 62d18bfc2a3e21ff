import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Disk, localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { DamagedBlockError } from '../../../src/service/storage/errors.ts';
import { openStorage } from '../../../src/service/storage/open.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { builtUrl } from '../../support/build.ts';
import { body, bytesOf, commit, HOME, opened, put, refusal, temporaryFolder, textAt } from './opened.ts';

function reopen(dataDirectory: string) {
  return openStorage({
    dataDirectory,
    clock: systemClock,
    log: silentLog,
    commitWaitMs: Number.POSITIVE_INFINITY,
  });
}

test('a second storage on a data directory is refused as in-use, in this process and in another', async () => {
  const storage = await opened();
  const inUse = {
    name: 'DataDirectoryError',
    reason: 'in-use',
    message: expect.stringContaining(storage.dataDirectory),
  };
  await expect(reopen(storage.dataDirectory)).rejects.toMatchObject(inUse);
  const script = `
    const { openStorage } = await import(${JSON.stringify(builtUrl('service/storage/open.ts'))});
    const clock = { now: () => Date.now() };
    await openStorage({ dataDirectory: process.argv[1], clock }).then(
      () => console.log('opened'), (failure) => console.log(failure.reason));`;
  const run = () =>
    execFileSync(process.execPath, ['--input-type=module', '-e', script, storage.dataDirectory], {
      encoding: 'utf8',
    });
  expect(run()).toBe('in-use\n');
  expect(await refusal(put(storage, '/a', 'still works'))).toBe('done');
  await storage.close();
  expect(run()).toBe('opened\n');
});

test('a newer schema, a damaged database and an unusable folder are each refused with their own reason', async () => {
  const newer = await temporaryFolder();
  const database = new Sqlite(join(newer, 'storage.sqlite'));
  database.pragma('user_version = 1000');
  database.close();
  await expect(reopen(newer)).rejects.toMatchObject({ reason: 'newer' });
  const damaged = await temporaryFolder();
  await writeFile(join(damaged, 'storage.sqlite'), randomBytes(10_000));
  await expect(reopen(damaged)).rejects.toMatchObject({ reason: 'damaged' });
  await writeFile(join(damaged, 'file'), '');
  for (const folder of [join(damaged, 'file', 'data'), '/proc/davgate/data'])
    await expect(reopen(folder)).rejects.toMatchObject({
      reason: 'unusable',
      message: expect.stringContaining(folder),
    });
});

test('a write-ahead log whose database is missing is kept under another name, and the log names it', async () => {
  const dataDirectory = await temporaryFolder();
  const logFile = join(dataDirectory, 'storage.sqlite-wal');
  await writeFile(logFile, 'the last commits');
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (_: string, fields?: object) => errors.push(fields) };
  const storage = await openStorage({ dataDirectory, clock: systemClock, log });
  await storage.close();
  const kept = (await readdir(dataDirectory)).filter((name) => name.startsWith('storage.sqlite-wal.kept-'));
  expect(errors).toEqual([{ keptAt: join(dataDirectory, kept[0] ?? '') }]);
  expect(await readFile(join(dataDirectory, kept[0] ?? ''), 'utf8')).toBe('the last commits');
});

test.each(['blocks', 'incoming'])(
  'a file in place of the folder %s is refused by name, and the next start without it succeeds',
  async (name) => {
    const dataDirectory = await temporaryFolder();
    await writeFile(join(dataDirectory, name), '');
    await expect(reopen(dataDirectory)).rejects.toMatchObject({
      name: 'DataDirectoryError',
      reason: 'unusable',
      message: expect.stringMatching(`^${join(dataDirectory, name)} .*\\(EEXIST\\)`),
    });
    await rm(join(dataDirectory, name));
    await (await reopen(dataDirectory)).close();
  },
);

test('a blocks folder that cannot be read is refused by name', async () => {
  const dataDirectory = await temporaryFolder();
  const names = () => {
    throw Object.assign(new Error('EACCES: injected'), { code: 'EACCES' });
  };
  const options = { dataDirectory, clock: systemClock, log: silentLog, disk: { ...localDisk, names } };
  await expect(openStorage(options)).rejects.toMatchObject({
    reason: 'unusable',
    message: expect.stringMatching(`^${dataDirectory} .*EACCES`),
  });
});

test('the database is readable by its owner alone, whatever the permissions of an existing folder', async () => {
  const parent = await temporaryFolder();
  await mkdir(join(parent, 'shared'), { mode: 0o755 });
  for (const dataDirectory of [join(parent, 'new', 'data'), join(parent, 'shared')]) {
    const storage = await opened({ dataDirectory });
    await put(storage, '/a', randomBytes(100_000));
    for (const name of await readdir(dataDirectory))
      expect((await stat(join(dataDirectory, name))).mode & 0o077, name).toBe(0);
  }
  expect((await stat(join(parent, 'new', 'data'))).mode & 0o077).toBe(0);
});

test('the next start after a crash removes exactly the files that the crash left behind', async () => {
  const storage = await opened();
  const bytes = randomBytes(5_000_000);
  await put(storage, '/a', bytes);
  const session = await storage.startSession(HOME, 'sequential', body(bytes.subarray(0, 100_000)), false);
  await storage.close();
  const unclean = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  unclean.exec(`UPDATE setting SET value = 0 WHERE name = 'closed'`);
  unclean.close();
  await writeFile(join(storage.dataDirectory, 'blocks', 'a'.repeat(64)), 'half a block');
  await writeFile(join(storage.dataDirectory, 'incoming', '7'), 'half a block');
  const again = await opened({ dataDirectory: storage.dataDirectory });
  expect(await readdir(join(storage.dataDirectory, 'incoming'))).toEqual([]);
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(4);
  await again.tidy();
  expect(await readdir(join(storage.dataDirectory, 'blocks'))).toHaveLength(3);
  const file = await put(again, '/a', bytes);
  expect((await bytesOf(again.read(HOME, file, undefined))).equals(bytes)).toBe(true);
  await again.finishSession(HOME, { session, offset: 100_000 }, commit('/b'), body());
  expect(Buffer.from(await textAt(again, '/b'), 'latin1').length).toBeGreaterThan(0);
});

/** Returns the path of the only block file. */
async function onlyBlock(dataDirectory: string): Promise<string> {
  const [name = 'none'] = await readdir(join(dataDirectory, 'blocks'));
  return join(dataDirectory, 'blocks', name);
}

async function flipByte(file: string): Promise<void> {
  const bytes = await readFile(file);
  const handle = await open(file, 'r+');
  await handle.write(Buffer.from([(bytes[50_000] ?? 0) ^ 1]), 0, 1, 50_000);
  await handle.close();
}

test.each([
  ['changed', flipByte],
  ['cut short', (file: string) => writeFile(file, randomBytes(10))],
  ['missing', (file: string) => rm(file)],
])('a block that is %s is never served, and uploading the same bytes repairs it', async (_, damage) => {
  const storage = await opened();
  const bytes = randomBytes(100_000);
  const file = await put(storage, '/a', bytes);
  await damage(await onlyBlock(storage.dataDirectory));
  await expect(bytesOf(storage.read(HOME, file, { start: 0, end: 1 }))).rejects.toBeInstanceOf(
    DamagedBlockError,
  );
  await put(storage, '/b', bytes);
  expect((await bytesOf(storage.read(HOME, file, undefined))).equals(bytes)).toBe(true);
});

test.each([
  ['changed', flipByte],
  ['cut short', (file: string) => writeFile(file, randomBytes(10))],
  ['missing', (file: string) => rm(file)],
])(
  'an upload of the same bytes repairs a block that is %s, also when nobody has read it since the start',
  async (_, damage) => {
    const storage = await opened();
    const bytes = randomBytes(100_000);
    const file = await put(storage, '/a', bytes);
    await storage.close();
    await damage(await onlyBlock(storage.dataDirectory));
    const again = await opened({ dataDirectory: storage.dataDirectory });
    const other = await put(again, '/b', bytes);
    expect((await bytesOf(again.read(HOME, other, undefined))).equals(bytes)).toBe(true);
    expect((await bytesOf(again.read(HOME, file, undefined))).equals(bytes)).toBe(true);
  },
);

test('an upload of the same bytes leaves a good block as it is, and reads it once however often it has these bytes', async () => {
  let reads = 0;
  const read: Disk['read'] = (...call) => {
    reads += 1;
    return localDisk.read(...call);
  };
  const storage = await opened({ disk: { ...localDisk, read } });
  const bytes = randomBytes(BLOCK_BYTES);
  await put(storage, '/a', bytes);
  const before = await stat(await onlyBlock(storage.dataDirectory), { bigint: true });
  reads = 0;
  await put(storage, '/b', bytes, bytes, bytes, bytes, bytes);
  expect(reads).toBe(1);
  const after = await stat(await onlyBlock(storage.dataDirectory), { bigint: true });
  expect([after.ino, after.mtimeNs]).toEqual([before.ino, before.mtimeNs]);
});

test.each([
  ['changed', `UPDATE block_bytes SET bytes = CAST('smell' AS BLOB)`],
  ['missing', 'DELETE FROM block_bytes'],
])(
  'an upload of the same bytes, to the same path or another, repairs a block in the database that is %s',
  async (_, damage) => {
    const first = await opened();
    const file = await put(first, '/a', 'small');
    await first.close();
    for (const path of ['/a', '/b', '/b']) {
      const database = new Sqlite(join(first.dataDirectory, 'storage.sqlite'));
      database.exec(damage);
      database.close();
      const again = await opened({ dataDirectory: first.dataDirectory });
      await put(again, path, 'small');
      expect(await textAt(again, path)).toBe('small');
      expect((await bytesOf(again.read(HOME, file, undefined))).toString()).toBe('small');
      await again.close();
    }
  },
);

test('a damaged block in the database is never served', async () => {
  const storage = await opened();
  const file = await put(storage, '/a', 'small');
  await storage.close();
  const database = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  database.exec(`UPDATE block_bytes SET bytes = CAST('smell' AS BLOB)`);
  database.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  await expect(bytesOf(again.read(HOME, file, undefined))).rejects.toBeInstanceOf(DamagedBlockError);
});

test('a foreign folder in the blocks folder does not disturb housekeeping', async () => {
  const storage = await opened();
  await put(storage, '/a', randomBytes(100_000));
  await mkdir(join(storage.dataDirectory, 'blocks', 'lost+found'));
  await storage.close();
  const unclean = new Sqlite(join(storage.dataDirectory, 'storage.sqlite'));
  unclean.exec(`UPDATE setting SET value = 0 WHERE name = 'closed'`);
  unclean.close();
  const again = await opened({ dataDirectory: storage.dataDirectory });
  await again.tidy();
  expect((await again.stat(HOME, '/a', false)).kind).toBe('file');
});

test('a closed storage refuses calls', async () => {
  const storage = await opened();
  await storage.close();
  expect(await refusal(storage.createFolder(HOME, '/a', false))).toBe('the storage is closed');
});
