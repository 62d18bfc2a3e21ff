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

function openCache(sizeBytesMax = 100 * MIBIBYTE, log: Log = silentLog): Promise<BlockCache> {
  return openBlockCache({ directory, sizeBytesMax, clock, log });
}

/** Keeps blocks and closes the cache, so that they are on the disk and nowhere else. */
async function store(...keys: BlockKey[]): Promise<void> {
  const cache = await openCache();
  for (const key of keys) cache.keep(key, bytes.subarray(0, key.sizeBytes));
  await cache.close();
}

/** The paths of all blocks on the disk. */
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

test('blocks are there after a restart', async () => {
  const last = { ...block, index: 1, sizeBytes: 12_345 };
  await store(block, last);
  const cache = await openCache();
  expect(cache.has(block)).toBe(true);
  expect((await read(cache))?.equals(bytes)).toBe(true);
  expect((await read(cache, block, 100_000, 300_001))?.equals(bytes.subarray(100_000, 300_001))).toBe(true);
  expect((await read(cache, last))?.equals(bytes.subarray(0, 12_345))).toBe(true);
});

test('a block is read into the buffer that is given, from any place in it', async () => {
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

test('parts of blocks are there after a restart', async () => {
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

test('the cache retains a buffer for as long as it keeps the bytes', async () => {
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

describe('a block that is not what was written is a miss, and goes away', () => {
  const headerBytes = async (path: string) => (await stat(path)).size - BLOCK_BYTES;
  const damages = [
    { what: 'a bit of its first byte', damage: async (path: string) => flip(path, await headerBytes(path)) },
    {
      what: 'a bit of its last byte',
      damage: async (path: string) => flip(path, (await stat(path)).size - 1),
    },
    { what: 'a bit of the magic', damage: (path: string) => flip(path, 0) },
    { what: 'a bit of a checksum', damage: (path: string) => flip(path, 40) },
    { what: 'the end of its file', damage: (path: string) => truncate(path, BLOCK_BYTES - 1) },
    { what: 'all of its file', damage: (path: string) => truncate(path, 0) },
  ];
  test.each(damages)('$what', async ({ damage }) => {
    await store(block);
    const path = await onlyFile();
    await damage(path);
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    expect(await read(cache)).toBeUndefined();
    expect(cache.has(block)).toBe(false);
    expect(warnings).toEqual(['a cached block was damaged and is downloaded again']);
    await eventually(async () => expect(await files()).toEqual([]));
  });

  test('another block under its name', async () => {
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

  test('a part of it that is whole can still be read', async () => {
    await store(block);
    await flip(await onlyFile(), (await stat(await onlyFile())).size - 1);
    const cache = await openCache();
    const whole = bytes.subarray(0, PIECE_BYTES + 1);
    expect((await read(cache, block, 0, PIECE_BYTES + 1))?.equals(whole)).toBe(true);
  });
});

test('what a killed process left half-written goes at the next start', async () => {
  await store(block);
  const leftOver = join(directory, 'v1', 'incoming', 'left');
  await writeFile(leftOver, 'half');
  await openCache();
  expect(await files()).not.toContain(leftOver);
  expect(await files()).toHaveLength(1);
});

test('files that are not its own stay', async () => {
  await store(block);
  const foreign = join(dirname(await onlyFile()), 'notes.txt');
  await writeFile(foreign, 'mine');
  await (await openCache(4096)).close();
  expect(await readFile(foreign, 'utf8')).toBe('mine');
});

describe('the size on the disk is bounded', () => {
  test('the longest unused block goes first', async () => {
    const cache = await openCache(10 * MIBIBYTE);
    const keys = Array.from({ length: 8 }, (_, index) => ({ ...block, index, sizeBytes: 3 * MIBIBYTE }));
    for (const key of keys) {
      cache.keep(key, bytes.subarray(0, key.sizeBytes));
      await eventually(async () => expect((await files()).length).toBeGreaterThan(0));
    }
    await cache.close();
    await eventually(async () => expect((await files()).length).toBeLessThanOrEqual(3));
    const again = await openCache(10 * MIBIBYTE);
    expect(again.has(keys[0] ?? block)).toBe(false);
  });

  test('also when it was larger before', async () => {
    await store(...[0, 1, 2].map((index) => ({ ...block, index })));
    expect(await files()).toHaveLength(3);
    await openCache(9 * MIBIBYTE);
    await eventually(async () => expect(await files()).toHaveLength(2));
  });

  test('a block that is larger than all the room is not written', async () => {
    const cache = await openCache(MIBIBYTE);
    cache.keep(block, bytes);
    await cache.close();
    expect(await files()).toEqual([]);
  });
});

describe('a directory that is deleted while it is used', () => {
  test('costs what was in it and nothing else', async () => {
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

  test('between two steps of a write costs this block', async () => {
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    for (let index = 0; index < 20; index++) {
      cache.keep({ ...block, index, sizeBytes: 1000 }, bytes.subarray(0, 1000));
      // The writer puts new files where the deletion is at work.
      await rm(join(directory, 'v1'), { recursive: true, force: true, maxRetries: 20, retryDelay: 1 });
    }
    cache.keep(block, bytes);
    await cache.close();
    expect(warnings).toEqual([]);
    expect((await read(await openCache()))?.equals(bytes)).toBe(true);
  });
});

describe('a disk that refuses', () => {
  /** A file where a folder should be: what even root cannot write into. */
  async function takeAway(): Promise<void> {
    await rename(join(directory, 'v1'), join(directory, 'elsewhere'));
    await writeFile(join(directory, 'v1'), 'the disk is not mounted');
  }

  async function bringBack(): Promise<void> {
    await rm(join(directory, 'v1'));
    await rename(join(directory, 'elsewhere'), join(directory, 'v1'));
  }

  test('is warned of once, and reads go on', async () => {
    await store(block);
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    // A file where folders should be: what even root cannot write into.
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

  test('from the start is warned of once', async () => {
    await writeFile(join(directory, 'v1'), 'a file where the folder should be');
    const warnings: string[] = [];
    const cache = await openCache(undefined, { ...silentLog, warn: (event) => warnings.push(event) });
    cache.keep(block, bytes);
    await cache.close();
    expect(warnings).toHaveLength(1);
  });

  test('is tried again after a minute', async () => {
    const events: string[] = [];
    const keep = (event: string) => void events.push(event);
    const cache = await openCache(undefined, { ...silentLog, warn: keep, info: keep });
    await takeAway();
    const key = (index: number) => ({ ...block, index });
    cache.keep(key(1), bytes);
    await eventually(() => expect(events).toHaveLength(1));
    await clock.advance(59_999);
    cache.keep(key(2), bytes);
    await clock.advance(1);
    for (const index of [3, 6, 7, 8]) cache.keep(key(index), bytes);
    // Given up by the writer, and pushed out of memory by the later ones. That the disk still refuses is no news.
    await eventually(() => expect(cache.has(key(3))).toBe(false));
    await bringBack();
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

  test('from the start is used as soon as it takes blocks, with what was on it', async () => {
    await store(block);
    await takeAway();
    const cache = await openCache();
    expect(cache.has(block)).toBe(false);
    await bringBack();
    await clock.advance(60_000);
    cache.keep({ ...block, index: 1 }, bytes);
    await eventually(() => expect(cache.has(block)).toBe(true));
    expect((await read(cache))?.equals(bytes)).toBe(true);
    await cache.close();
    expect(await files()).toHaveLength(2);
  });

  test('because it is full', async () => {
    const warnings: unknown[] = [];
    const log = { ...silentLog, warn: (...event: unknown[]) => warnings.push(event) };
    const cache = await openCache(undefined, log);
    // No file system can be filled here without being root: the error is the one that Linux gives.
    const full = vi.spyOn(Object.getPrototypeOf(await handleOf()), 'writev');
    full.mockRejectedValue(
      Object.assign(new Error('ENOSPC: no space left on device, writev'), { code: 'ENOSPC' }),
    );
    cache.keep(block, bytes);
    await eventually(() => expect(warnings).toHaveLength(1));
    full.mockRestore();
    expect(warnings).toMatchObject([[expect.any(String), { problem: expect.stringContaining('ENOSPC') }]]);
    expect((await read(cache))?.equals(bytes)).toBe(true);
    await cache.close();
    expect(await files()).toEqual([]);
  });
});

test('running out of file handles costs no block', async () => {
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
