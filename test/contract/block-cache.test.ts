import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BlockCache, openBlockCache } from '../../src/drive/content/block-cache.ts';
import type { BlockKey } from '../../src/drive/content/blocks.ts';
import { systemClock } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { silentLog } from '../../src/util/log.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';

const GIBIBYTE = 1024 ** 3;
const WORLD = { clock: systemClock, log: silentLog };

/** All configurations of the block cache; each holds at least a few blocks. */
const DRIVERS: { readonly name: string; open(directory: string): Promise<BlockCache> }[] = [
  {
    name: 'memory and disk',
    open: (directory) => openBlockCache({ directory, sizeBytesMax: GIBIBYTE, ...WORLD }),
  },
  {
    name: 'memory alone',
    open: (directory) => openBlockCache({ directory, sizeBytesMax: 0, ...WORLD }),
  },
  {
    name: 'a directory that cannot be',
    open: (directory) =>
      openBlockCache({ directory: join('/dev/null', directory), sizeBytesMax: GIBIBYTE, ...WORLD }),
  },
];

const bytes = pseudoRandomBytes(BLOCK_BYTES, 1);
const block: BlockKey = { content: 'one', index: 0, sizeBytes: BLOCK_BYTES };
const small: BlockKey = { content: 'small', index: 0, sizeBytes: 3 };

describe.each(DRIVERS)('block cache: $name', ({ name, open }) => {
  let directory: string;
  let cache: BlockCache;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'davgate-cache-'));
    cache = await open(directory);
  });
  afterEach(async () => {
    await cache.close();
    await rm(directory, { recursive: true, force: true });
  });

  const read = async (key: BlockKey, start = 0, end = key.sizeBytes) => {
    const found = await cache.read(key, start, end);
    return found && Buffer.from(found);
  };

  test(`${name}: an empty cache has no block`, async () => {
    expect(cache.has(block)).toBe(false);
    expect(await cache.read(block, 0, 1)).toBeUndefined();
  });

  test(`${name}: a kept block is read back, whole and in part`, async () => {
    cache.keep(block, bytes);
    expect(cache.has(block)).toBe(true);
    expect((await read(block))?.equals(bytes)).toBe(true);
    const spans = [
      [0, 1],
      [999, 1001],
      [65_535, 65_537],
      [70_000, 200_000],
      [BLOCK_BYTES - 1, BLOCK_BYTES],
    ] as const;
    for (const [start, end] of spans)
      expect((await read(block, start, end))?.equals(bytes.subarray(start, end))).toBe(true);
  });

  test(`${name}: a block is read into the buffer of the caller`, async () => {
    cache.keep(block, bytes, { buffer: { retain: () => {}, release: () => {} } });
    const into = Buffer.alloc(BLOCK_BYTES, 1);
    const found = await cache.read(block, 70_000, 200_001, into);
    expect(Buffer.from(found ?? []).equals(bytes.subarray(70_000, 200_001))).toBe(true);
  });

  test(`${name}: a block in memory is returned without a copy unless its buffer is used again`, async () => {
    expect(cache.inMemory(small)).toBeUndefined();
    cache.keep(small, Buffer.from('abc'));
    expect(Buffer.from(cache.inMemory(small) ?? []).toString()).toBe('abc');
    cache.keep(block, bytes, { buffer: { retain: () => {}, release: () => {} } });
    expect(cache.inMemory(block)).toBeUndefined();
  });

  test(`${name}: blocks with another content, index or size are other blocks`, async () => {
    cache.keep(small, Buffer.from('abc'));
    expect(cache.has({ ...small, content: 'other' })).toBe(false);
    expect(cache.has({ ...small, index: 1 })).toBe(false);
    expect(cache.has({ ...small, sizeBytes: 4 })).toBe(false);
    expect((await read(small))?.toString()).toBe('abc');
  });

  test(`${name}: each kept part of a block is read back up to its end`, async () => {
    const middle = 3 * 65_536;
    cache.keep(block, bytes.subarray(middle), { from: middle });
    expect([cache.has(block), cache.has(block, middle - 1), cache.has(block, middle)]).toEqual([
      false,
      false,
      true,
    ]);
    expect([cache.partAfter(block, 0), cache.partAfter(block, middle)]).toEqual([middle, undefined]);
    expect(await read(block, middle - 1, middle + 1)).toBeUndefined();
    expect(
      (await read(block, middle + 5, middle + 99))?.equals(bytes.subarray(middle + 5, middle + 99)),
    ).toBe(true);
    cache.keep(block, bytes.subarray(0, middle));
    expect((await read(block, 7, middle + 99))?.equals(bytes.subarray(7, middle))).toBe(true);
    cache.forget(block);
    expect([cache.has(block), cache.has(block, middle)]).toEqual([false, false]);
  });

  test(`${name}: a forgotten block is gone`, async () => {
    cache.keep(small, Buffer.from('abc'));
    cache.forget(small);
    expect(cache.has(small)).toBe(false);
    expect(await cache.read(small, 0, 3)).toBeUndefined();
  });

  test(`${name}: a block can be kept again, also after it was forgotten`, async () => {
    for (let round = 0; round < 3; round++) cache.keep(small, Buffer.from('abc'));
    cache.forget(small);
    cache.keep(small, Buffer.from('abc'));
    expect((await read(small))?.toString()).toBe('abc');
  });

  test(`${name}: the cache drops old blocks rather than grow without end`, async () => {
    // More blocks than memory and the disk queue hold together.
    const keys = Array.from({ length: 20 }, (_, index) => ({ ...block, index }));
    for (const key of keys) cache.keep(key, bytes);
    const latest = keys[19] ?? block;
    expect(cache.has(latest)).toBe(true);
    expect(keys.filter((key) => cache.has(key)).length).toBeLessThan(keys.length);
  });
});
