import { totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { memoryShares } from '../../../src/app/memory-shares.ts';
import { memoryBytes } from '../../../src/util/memory.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

test('a machine with 2 GiB has room for full caches and uploads', () => {
  const full = {
    metadataBytesMax: 64 * MIB,
    listingBytesMax: 64 * MIB,
    uploads: { partBytes: 8 * MIB, buffersMax: 8 },
  };
  expect(memoryShares(2 * GIB, 1)).toEqual(full);
  expect(memoryShares(256 * GIB, 10)).toEqual(full);
});

test('a container of 256 MiB gives caches and uploads less than a quarter of its memory', () => {
  expect(memoryShares(256 * MIB, 1)).toEqual({
    metadataBytesMax: 16 * MIB,
    listingBytesMax: 8 * MIB,
    uploads: { partBytes: 4 * MIB, buffersMax: 8 },
  });
});

test('many drives share the memory of the metadata caches', () => {
  expect(memoryShares(256 * MIB, 8).metadataBytesMax).toBe(2 * MIB);
});

test('each upload has a buffer, however little memory there is', () => {
  expect(memoryShares(16 * MIB, 1).uploads).toEqual({ partBytes: 4 * MIB, buffersMax: 1 });
});

test("the memory of this process is at most the machine's", () => {
  expect(memoryBytes()).toBeGreaterThan(0);
  expect(memoryBytes()).toBeLessThanOrEqual(totalmem());
});
