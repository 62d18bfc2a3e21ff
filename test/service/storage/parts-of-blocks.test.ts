import { randomBytes } from 'node:crypto';
import { open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { localDisk } from '../../../src/service/storage/blocks/disk.ts';
import { DamagedBlockError } from '../../../src/service/storage/errors.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';
import { Sqlite } from '../../../src/util/sqlite/sqlite.ts';
import { body, bytesOf, commit, HOME, opened, put } from './opened.ts';

const KIB = 1024;

/** Opens a storage that counts the bytes that it reads from block files. */
async function counted(dataDirectory?: string) {
  let readBytes = 0;
  const storage = await opened({
    ...(dataDirectory && { dataDirectory }),
    disk: {
      ...localDisk,
      read: async (...question) => {
        const bytes = await localDisk.read(...question);
        // Not those of the reserve, which a start looks at.
        if (question[0].includes('/blocks/')) readBytes += bytes.length;
        return bytes;
      },
    },
  });
  return {
    storage,
    /** Returns the bytes of a range, and how many were read for it. */
    async read(file: Awaited<ReturnType<typeof put>>, start: number, end: number) {
      const before = readBytes;
      const bytes = await bytesOf(storage.read(HOME, file, { start, end }));
      return { bytes, readBytes: readBytes - before };
    },
  };
}

test('short ranges are read without the rest of their blocks, and have the right bytes', async () => {
  const { storage, read } = await counted();
  const content = randomBytes(2 * BLOCK_BYTES + 300_001);
  // Pieces of odd lengths, because checksums do not follow the network's chunks.
  const file = await put(storage, '/a', content.subarray(0, 70_001), content.subarray(70_001));
  const { length } = content;
  const ranges: [number, number][] = [
    [0, 1],
    [64 * KIB - 1, 64 * KIB + 1],
    [100_000, 600_000],
    [BLOCK_BYTES - 10, BLOCK_BYTES + 10],
    [BLOCK_BYTES, BLOCK_BYTES + 64 * KIB],
    [length - 1, length],
    [2 * BLOCK_BYTES + 1, length],
  ];
  for (const [start, end] of ranges) {
    const { bytes, readBytes } = await read(file, start, end);
    expect(bytes.equals(content.subarray(start, end))).toBe(true);
    expect(readBytes).toBeLessThanOrEqual(end - start + 2 * 64 * KIB);
  }
});

test('damage in a block is noticed by a short range that holds it, and by the whole file', async () => {
  const { storage, read } = await counted();
  const content = randomBytes(BLOCK_BYTES);
  const file = await put(storage, '/a', content);
  const [name = ''] = await readdir(join(storage.dataDirectory, 'blocks'));
  const handle = await open(join(storage.dataDirectory, 'blocks', name), 'r+');
  await handle.write(Buffer.from([(content[1_000_000] ?? 0) ^ 1]), 0, 1, 1_000_000);
  await handle.close();
  expect((await read(file, 0, 10)).bytes.equals(content.subarray(0, 10))).toBe(true);
  await expect(read(file, 999_990, 1_000_010)).rejects.toBeInstanceOf(DamagedBlockError);
  await expect(bytesOf(storage.read(HOME, file, undefined))).rejects.toBeInstanceOf(DamagedBlockError);
});

test('a block without checksums, of an older version, is read whole until another file with it is stored', async () => {
  const older = await opened();
  const content = randomBytes(BLOCK_BYTES);
  const file = await put(older, '/a', content);
  await older.close();
  const database = new Sqlite(join(older.dataDirectory, 'storage.sqlite'));
  database.exec('DELETE FROM block_pieces');
  database.close();
  const { storage, read } = await counted(older.dataDirectory);
  const first = await read(file, 10, 20);
  expect(first.bytes.equals(content.subarray(10, 20))).toBe(true);
  expect(first.readBytes).toBe(BLOCK_BYTES);
  await put(storage, '/b', content, 'more');
  expect((await read(file, 10, 20)).readBytes).toBe(64 * KIB);
});

test('a block that was joined from pieces of a session is read in parts too', async () => {
  const { storage, read } = await counted();
  const content = randomBytes(900_000);
  const session = await storage.startSession(HOME, 'sequential', body(content.subarray(0, 300_000)), false);
  await storage.appendSession(HOME, { session, offset: 300_000 }, body(content.subarray(300_000)), true);
  const file = await storage.finishSession(HOME, { session, offset: 900_000 }, commit('/a'), body());
  const { bytes, readBytes } = await read(file, 500_000, 500_100);
  expect(bytes.equals(content.subarray(500_000, 500_100))).toBe(true);
  expect(readBytes).toBeLessThanOrEqual(128 * KIB);
});
