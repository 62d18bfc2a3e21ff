import { expect, test } from 'vitest';
import { BlockBuffers } from '../../../../src/drive/content/block-buffers.ts';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';

test('readers that take turns use the same buffers again, however many there are', () => {
  const buffers = new BlockBuffers();
  const made = new Set<ArrayBufferLike>();
  const take = () => {
    const buffer = buffers.take(BLOCK_BYTES);
    made.add(buffer.bytes.buffer);
    return buffer;
  };
  const inUse = Array.from({ length: 12 }, take);
  for (let turn = 0; turn < 100; turn++) {
    inUse.shift()?.release();
    inUse.push(take());
  }
  expect(made.size).toBe(12);
});

test('few idle buffers are kept when the readers have gone', () => {
  const buffers = new BlockBuffers();
  const first = Array.from({ length: 12 }, () => buffers.take(BLOCK_BYTES));
  const before = new Set(first.map(({ bytes }) => bytes.buffer));
  for (const buffer of first) buffer.release();
  const again = Array.from({ length: 12 }, () => buffers.take(BLOCK_BYTES));
  expect(again.filter(({ bytes }) => before.has(bytes.buffer))).toHaveLength(4);
});
