import { mkdtemp, open, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import { PIECE_BYTES } from '../../src/drive/content/block-file.ts';
import type { BlockKey } from '../../src/drive/content/blocks.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { mountSmallDisk } from '../support/small-disk.ts';

const MIBIBYTE = 1024 ** 2;
const bytes = pseudoRandomBytes(BLOCK_BYTES, 1);
const block: BlockKey = { content: 'one', index: 0, sizeBytes: BLOCK_BYTES };

let directory: string;
let clock: ManualClock;
beforeEach(async () => {
  clock = new ManualClock();
  directory = await mkdtemp(join(tmpdir(), 'davgate-cache-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

function openCache(sizeBytesMax = 100 * MIBIBYTE, log: Log = silentLog) {
  return openBlockCache({ directory, sizeBytesMax, clock, log });
}

/** Keeps blocks and closes the cache, so that they are on the disk and nowhere else. */
async function store(...keys: BlockKey[]): Promise<void> {
  const cache = await openCache();
  for (const key of keys) cache.keep(key, bytes.subarray(0, key.sizeBytes));
  await cache.close();
}

/** Returns the paths of all blocks on the disk. */
async function files(): Promise<string[]> {
  const entries = await readdir(join(directory, 'v1'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function onlyFile(): Promise<string> {
  const [path = '', ...more] = await files();
  expect(more).toEqual([]);
  return path;
}

async function flip(path: string, at: number): Promise<void> {
  const file = await open(path, 'r+');
  const byte = Buffer.alloc(1);
  await file.read(byte, 0, 1, at);
  byte[0] = (byte[0] ?? 0) ^ 4;
  await file.write(byte, 0, 1, at);
  await file.close();
}

async function read(
  cache: BlockCache,
  key = block,
  start = 0,
  end = key.sizeBytes,
): Promise<Buffer | undefined> {
  const found = await cache.read(key, start, end);
  return found && Buffer.from(found);
}

test('the block cache returns its blocks after a restart', async () => {
  const last = { ...block, index: 1, sizeBytes: 12_345 };
  await store(block, last);
  const cache = await openCache();
  expect(cache.has(block)).toBe(true);
  expect((await read(cache))?.equals(bytes)).toBe(true);
  expect((await read(cache, block, 100_000, 300_001))?.equals(bytes.subarray(100_000, 300_001))).toBe(true);
  expect((await read(cache, last))?.equals(bytes.subarray(0, 12_345))).toBe(true);
});

test('the block cache reads a block, or a range of it, into the given buffer', async () => {
  await store(block);
  const cache = await openCache();
  const into = Buffer.alloc(BLOCK_BYTES);
  for (const [start, end] of [
    [0, BLOCK_BYTES],
    [100_000, 3_000_001],
  ] as const) {
    const found = await cache.read(block, start, end, into);
    expect(found?.buffer).toBe(into.buffer);
    expect(Buffer.from(found ?? []).equals(bytes.subarray(start, end))).toBe(true);
  }
});

test('the block cache returns a part of a block after a restart, and misses it once it is damaged', async () => {
  const from = 65_536;
  const first = await openCache();
  first.keep(block, bytes.subarray(from), { from });
  await first.close();
  const cache = await openCache();
  expect([cache.has(block), cache.partAfter(block, 0)]).toEqual([false, from]);
  expect((await read(cache, block, from, BLOCK_BYTES))?.equals(bytes.subarray(from))).toBe(true);
  await flip(await onlyFile(), (await stat(await onlyFile())).size - 1);
  expect(await read(cache, block, BLOCK_BYTES - 1, BLOCK_BYTES)).toBeUndefined();
  expect(cache.has(block, from)).toBe(false);
});

test('the block cache retains a buffer while it keeps its bytes, and releases it afterwards', async () => {
  let users = 1;
  let most = 0;
  const buffer = {
    retain: () => {
      users++;
      most = Math.max(most, users);
    },
    release: () => void users--,
  };
  const cache = await openCache();
  for (let index = 0; index < 6; index++) cache.keep({ ...block, index }, bytes, { buffer });
  await cache.close();
  expect(most).toBeGreaterThan(2);
  for (let index = 0; index < 6; index++) cache.forget({ ...block, index });
  expect(users).toBe(1);
});

describe('a damaged cached block', () => {
  const headerBytes = async (path: string) => (await stat(path)).size - BLOCK_BYTES;
  const damages = [
    {
      what: 'its first byte has changed',
      damage: async (path: string) => flip(path, await headerBytes(path)),
    },
    {
      what: 'its last byte has changed',
      damage: async (path: string) => flip(path, (await stat(path)).size - 1),
    },
    { what: 'the magic number of its file has changed', damage: (path: string) => flip(path, 0) },
    { what: 'a checksum in its file has changed', damage: (path: string) => flip(path, 40) },
    { what: 'its file is cut off', damage: (path: string) => truncate(path, BLOCK_BYTES - 1) },
    { what: 'its file is empty', damage: (path: string) => truncate(path, 0) },
  ];
  test.each(damages)(
    'a cached block is a miss with one warning, and is removed, when $what',
    async ({ damage }) => {
      await store(block);
      const path = await onlyFile();
      await damage(path);
      const warnings: string[] = [];
      const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
      expect(await read(cache)).toBeUndefined();
      expect(cache.has(block)).toBe(false);
      expect(warnings).toEqual(['a cached block was damaged and is downloaded again']);
      await eventually(async () => expect(await files()).toEqual([]));
    },
  );

  test('a cached block whose file contains another block is a miss, and the other block is not', async () => {
    const other = { ...block, index: 1 };
    await store(block);
    const path = await onlyFile();
    await store(other);
    const otherPath = (await files()).find((file) => file !== path) ?? '';
    await writeFile(path, await readFile(otherPath));
    const cache = await openCache();
    expect(await read(cache)).toBeUndefined();
    expect(await read(cache, other)).toBeDefined();
  });

  test('undamaged pieces of a damaged cached block are still read', async () => {
    await store(block);
    await flip(await onlyFile(), (await stat(await onlyFile())).size - 1);
    const cache = await openCache();
    const whole = bytes.subarray(0, PIECE_BYTES + 1);
    expect((await read(cache, block, 0, PIECE_BYTES + 1))?.equals(whole)).toBe(true);
  });
});

test('opening the block cache removes the incomplete files of a killed process', async () => {
  await store(block);
  const leftOver = join(directory, 'v1', 'incoming', 'left');
  await writeFile(leftOver, 'half');
  await openCache();
  expect(await files()).not.toContain(leftOver);
  expect(await files()).toHaveLength(1);
});

test('the block cache leaves foreign files in its directory alone', async () => {
  await store(block);
  const foreign = join(dirname(await onlyFile()), 'notes.txt');
  await writeFile(foreign, 'mine');
  await (await openCache(4096)).close();
  expect(await readFile(foreign, 'utf8')).toBe('mine');
});

describe('the size limit of the block cache', () => {
  test('the block cache stays within its limit and evicts the block that was unused for longest', async () => {
    const cache = await openCache(10 * MIBIBYTE);
    const keys = Array.from({ length: 4 }, (_, index) => ({ ...block, index, sizeBytes: 3 * MIBIBYTE }));
    const keep = (key: BlockKey) => cache.keep(key, bytes.subarray(0, key.sizeBytes));
    const [first = block, , , last = block] = keys;
    for (const [index, key] of keys.slice(0, 3).entries()) {
      expect(keep(key)).toBe(true);
      await eventually(() => expect(cache.diskBytes).toBeGreaterThan((index + 1) * 3 * MIBIBYTE));
    }
    expect(await read(cache, first)).toBeDefined();
    expect(keep(last)).toBe(true);
    await cache.close();
    expect(cache.diskBytes).toBeLessThanOrEqual(10 * MIBIBYTE);
    await eventually(async () => expect(await files()).toHaveLength(3));
    // Blocks are also kept in memory: another cache knows only those on the disk.
    const again = await openCache(10 * MIBIBYTE);
    expect(keys.map((key) => again.has(key))).toEqual([true, false, true, true]);
  });

  test('the block cache shrinks to its limit when it is opened with a lower one', async () => {
    await store(...[0, 1, 2].map((index) => ({ ...block, index })));
    expect(await files()).toHaveLength(3);
    await openCache(9 * MIBIBYTE);
    await eventually(async () => expect(await files()).toHaveLength(2));
  });

  test('the block cache does not write a block that is larger than its limit', async () => {
    const cache = await openCache(MIBIBYTE);
    cache.keep(block, bytes);
    await cache.close();
    expect(await files()).toEqual([]);
  });
});

describe('a block cache whose directory is deleted', () => {
  test('a block cache whose directory is deleted loses its blocks and keeps later ones', async () => {
    await store(block);
    const cache = await openCache();
    await rm(directory, { recursive: true });
    expect(await read(cache)).toBeUndefined();
    expect(cache.has(block)).toBe(false);
    cache.keep({ ...block, index: 1 }, bytes);
    await cache.close();
    expect(await files()).toHaveLength(1);
    expect((await read(await openCache(), { ...block, index: 1 }))?.equals(bytes)).toBe(true);
  });

  test('a block cache whose directory is deleted between two steps of a write keeps later blocks and logs no warning', async () => {
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    for (let index = 0; index < 20; index++) {
      cache.keep({ ...block, index, sizeBytes: 1000 }, bytes.subarray(0, 1000));
      // The cache may write new files into the directory while it is being deleted.
      await rm(join(directory, 'v1'), { recursive: true, force: true, maxRetries: 20, retryDelay: 1 });
    }
    cache.keep(block, bytes);
    await cache.close();
    expect(warnings).toEqual([]);
    expect((await read(await openCache()))?.equals(bytes)).toBe(true);
  });
});

describe('a block cache on a failing disk', () => {
  /** Replaces the folder by a file, into which even root cannot write. */
  async function breakDisk(): Promise<void> {
    await rename(join(directory, 'v1'), join(directory, 'elsewhere'));
    await writeFile(join(directory, 'v1'), 'the disk is not mounted');
  }

  async function repairDisk(): Promise<void> {
    await rm(join(directory, 'v1'));
    await rename(join(directory, 'elsewhere'), join(directory, 'v1'));
  }

  test('a block cache that cannot write warns once and still returns all blocks', async () => {
    await store(block);
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    // A file in the place of a folder, into which even root cannot write.
    await rename(join(directory, 'v1', 'incoming'), join(directory, 'v1', 'gone'));
    await writeFile(join(directory, 'v1', 'incoming'), '');
    const others = [1, 2, 3].map((index) => ({ ...block, index }));
    for (const key of others) cache.keep(key, bytes);
    await eventually(() => expect(warnings).toHaveLength(1));
    for (const key of others) cache.keep(key, bytes);
    await cache.close();
    expect(warnings).toEqual(['cannot write to the block cache; reads continue without it']);
    expect((await read(cache))?.equals(bytes)).toBe(true);
    expect((await read(cache, others[2]))?.equals(bytes)).toBe(true);
  });

  test('a block cache that cannot write from the start warns once', async () => {
    await writeFile(join(directory, 'v1'), 'a file where the folder should be');
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    cache.keep(block, bytes);
    await cache.close();
    expect(warnings).toHaveLength(1);
  });

  test('a block cache that cannot write tries again after a minute, and logs the failure and the recovery once each', async () => {
    const events: string[] = [];
    const record = (event: string) => void events.push(event);
    const cache = await openCache(undefined, { ...silentLog, warn: record, info: record });
    await breakDisk();
    const key = (index: number) => ({ ...block, index });
    cache.keep(key(1), bytes);
    await eventually(() => expect(events).toHaveLength(1));
    await clock.advance(59_999);
    cache.keep(key(2), bytes);
    await clock.advance(1);
    for (const index of [3, 6, 7, 8]) cache.keep(key(index), bytes);
    // Block 3 was not written, and later blocks evict it from memory. A failure that continues is not logged again.
    await eventually(() => expect(cache.has(key(3))).toBe(false));
    await repairDisk();
    await clock.advance(60_000);
    for (const index of [4, 5]) cache.keep(key(index), bytes);
    await cache.close();
    expect(events).toEqual([
      'cannot write to the block cache; reads continue without it',
      'the block cache is writable again',
    ]);
    const again = await openCache();
    expect([1, 2, 3, 4, 5, 6].filter((index) => again.has(key(index)))).toEqual([4, 5]);
  });

  test('a block cache that could not be read at the start is used once the disk is back, with the blocks on it', async () => {
    await store(block);
    await breakDisk();
    const cache = await openCache();
    expect(cache.has(block)).toBe(false);
    await repairDisk();
    await clock.advance(60_000);
    cache.keep({ ...block, index: 1 }, bytes);
    await eventually(() => expect(cache.has(block)).toBe(true));
    expect((await read(cache))?.equals(bytes)).toBe(true);
    await cache.close();
    expect(await files()).toHaveLength(2);
  });

  test('a block that does not fit on a full disk is read from memory after one warning and leaves no file', async () => {
    const warnings: unknown[] = [];
    const log = { ...silentLog, warn: (...event: unknown[]) => warnings.push(event) };
    const disk = await mountSmallDisk(2);
    const cache = await openBlockCache({ directory: disk.path, sizeBytesMax: 100 * MIBIBYTE, clock, log });
    cache.keep(block, bytes);
    await eventually(() => expect(warnings).toHaveLength(1));
    const problem = expect.stringMatching(/ENOSPC|it may be full/);
    expect(warnings).toMatchObject([[expect.any(String), { problem }]]);
    expect((await read(cache))?.equals(bytes)).toBe(true);
    await cache.close();
    const left = await readdir(join(disk.path, 'v1'), { recursive: true, withFileTypes: true });
    await disk.unmount();
    expect(left.filter((entry) => entry.isFile())).toEqual([]);
  });
});

test('a read that fails for lack of file handles removes no block from the cache', async () => {
  await store(block);
  const cache = await openCache();
  const reads = vi.spyOn(Object.getPrototypeOf(await handleOf()), 'read');
  reads.mockRejectedValue(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }));
  expect(await read(cache)).toBeUndefined();
  reads.mockRestore();
  expect((await read(cache))?.equals(bytes)).toBe(true);
});

async function handleOf() {
  const handle = await open('/dev/null');
  await handle.close();
  return handle;
}
