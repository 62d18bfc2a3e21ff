import { expect, test } from 'vitest';
import { BlockBuffers } from '../../../src/service/storage/blocks/block-buffers.ts';
import { readContent } from '../../../src/service/storage/blocks/content-reader.ts';
import type { BlockRow } from '../../../src/service/storage/blocks/contents.ts';
import { BLOCK_BYTES } from '../../../src/util/content-hash.ts';

/** Buffers that count how many of them are in use. */
class CountedBuffers extends BlockBuffers {
  inUse = 0;
  most = 0;
  readonly made = new Set<Buffer>();

  override take(): Buffer {
    this.inUse++;
    this.most = Math.max(this.most, this.inUse);
    const buffer = super.take();
    this.made.add(buffer);
    return buffer;
  }

  override giveBack(buffer: Buffer): void {
    this.inUse--;
    super.giveBack(buffer);
  }
}

const BLOCKS = 6;

/** Reads a content whose blocks begin with their number, in turn with others. Returns these numbers. */
async function blocksRead(buffers: BlockBuffers): Promise<number[]> {
  const row = (id: number): BlockRow => ({
    id,
    hash: Buffer.of(id),
    sizeBytes: BLOCK_BYTES,
    inline: 0,
    name: '',
  });
  const parts = {
    blocks: {
      read: async (block: Pick<BlockRow, 'hash'>, into?: Buffer) => {
        const bytes = into ?? Buffer.alloc(BLOCK_BYTES);
        bytes[0] = block.hash[0] ?? 0;
        return bytes;
      },
      readPart: () => Promise.reject(new Error('whole blocks are read')),
    },
    contents: {
      blocksOf: (_content: number, from: number, count: number) =>
        Array.from({ length: Math.min(count, BLOCKS - from) }, (_, index) => row(from + index)),
      bytesOf: async () => undefined,
      isShared: false,
      piecesOf: () => undefined,
    },
    buffers,
  };
  const seen: number[] = [];
  for await (const bytes of readContent(parts, 1, { start: 0, end: BLOCKS * BLOCK_BYTES })) {
    seen.push(bytes[0] ?? -1);
    // The others go on.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return seen;
}

test('one download reads its next block ahead', async () => {
  const buffers = new CountedBuffers();
  expect(await blocksRead(buffers)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(buffers.most).toBe(2);
  expect(buffers.inUse).toBe(0);
});

test('many downloads at once have one block each in memory, and a few have two', async () => {
  const buffers = new CountedBuffers();
  const read = await Promise.all(Array.from({ length: 8 }, () => blocksRead(buffers)));
  for (const blocks of read) expect(blocks).toEqual([0, 1, 2, 3, 4, 5]);
  expect(buffers.most).toBeLessThanOrEqual(9);
  expect(buffers.inUse).toBe(0);
  // 48 blocks went through few buffers: new ones would wait for the garbage collector.
  expect(buffers.made.size).toBeLessThanOrEqual(12);
});
