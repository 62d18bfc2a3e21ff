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

/** How reading fails at a block. */
type Failure = 'damaged' | 'missing in the list';

/** Reads a content whose blocks begin with their number, in turn with others. Returns these numbers. */
async function blocksRead(
  buffers: BlockBuffers,
  failing: { readonly block?: number; readonly how?: Failure } = {},
): Promise<number[]> {
  const row = (id: number): BlockRow => ({
    id,
    hash: Buffer.of(id),
    sizeBytes: BLOCK_BYTES,
    inline: 0,
    name: '',
  });
  const listed = failing.how === 'missing in the list' ? (failing.block ?? 0) : BLOCKS;
  const parts = {
    blocks: {
      read: async (block: Pick<BlockRow, 'hash'>, into?: Buffer) => {
        if (failing.how === 'damaged' && block.hash[0] === failing.block) throw new Error('it is damaged');
        const bytes = into ?? Buffer.alloc(BLOCK_BYTES);
        bytes[0] = block.hash[0] ?? 0;
        return bytes;
      },
      readPart: () => Promise.reject(new Error('whole blocks are read')),
    },
    contents: {
      blocksOf: (_content: number, from: number, count: number) =>
        Array.from({ length: Math.min(count, listed - from) }, (_, index) => row(from + index)),
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

test.each<[Failure, number]>([
  ['damaged', 0],
  ['damaged', 2],
  ['damaged', BLOCKS - 1],
  ['missing in the list', 0],
  ['missing in the list', 2],
])('a download with a block that is %s, number %i, returns each of its buffers once', async (how, block) => {
  const buffers = new CountedBuffers();
  await expect(blocksRead(buffers, { how, block })).rejects.toThrow(/it is damaged|it ends too early/);
  expect(buffers.inUse).toBe(0);
  expect(new Set([buffers.take(), buffers.take()]).size).toBe(2);
});

test('a buffer that is returned twice is lent to one download only', () => {
  const buffers = new BlockBuffers();
  const buffer = buffers.take();
  buffers.giveBack(buffer);
  buffers.giveBack(buffer);
  expect(new Set([buffers.take(), buffers.take()]).size).toBe(2);
});
