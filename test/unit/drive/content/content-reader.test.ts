import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { joined } from '../../../support/byte-source.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { effort } from '../../../support/effort.ts';
import { eventually } from '../../../support/eventually.ts';
import { FILM, type ReaderSetUp, settle, setUpReader } from '../../../support/readers.ts';

const JUMP_BYTES = 512 * 1024;

const signal = new AbortController().signal;

let setUp: ReaderSetUp;
beforeEach(async () => {
  setUp = await setUpReader();
});
afterEach(() => setUp.close());

const blocks = (first: number, end: number) => ({ start: first * BLOCK_BYTES, end: end * BLOCK_BYTES });

describe('whole files', () => {
  test.each([1, 4096, BLOCK_BYTES, BLOCK_BYTES + 1, 5 * BLOCK_BYTES, 13 * BLOCK_BYTES + 7])(
    'a whole read of %d bytes is one download',
    async (sizeBytes) => {
      const { bytes, entry } = setUp.file(sizeBytes);
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      expect(setUp.asked()).toEqual([undefined]);
      await eventually(() => expect(setUp.remote.openDownloads).toBe(0));
    },
  );

  test('a read of an empty file costs no call', async () => {
    expect(await setUp.read(setUp.file(0).entry)).toHaveLength(0);
    expect(setUp.asked()).toEqual([]);
  });

  test('a file without a content hash is read without a check', async () => {
    const { bytes, entry } = setUp.file(BLOCK_BYTES + 9);
    const { contentHash: _none, ...bare } = entry;
    expect((await setUp.read(bare)).equals(bytes)).toBe(true);
  });

  test('a second read of a small file costs no call, even after a restart', async () => {
    const { bytes, entry } = setUp.file(4096);
    await setUp.read(entry);
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    const reader = await setUp.restart();
    expect((await joined(reader.read(entry, undefined, signal))).equals(bytes)).toBe(true);
    expect(setUp.asked()).toHaveLength(1);
  });

  test('a whole read takes its first blocks from the cache and downloads the rest', async () => {
    const { bytes, entry } = setUp.file(4 * BLOCK_BYTES);
    await setUp.read(entry, blocks(0, 2));
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    expect(setUp.asked()).toEqual([blocks(0, 2), blocks(2, 4)]);
  });

  test('a whole read of a file that is too large for the cache keeps none of its blocks', async () => {
    const { bytes, entry } = setUp.file(17 * BLOCK_BYTES);
    await setUp.read(entry);
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    expect(setUp.asked()).toEqual([undefined, undefined]);
  });

  test('a file that was moved is still read from the cache', async () => {
    const { bytes, entry } = setUp.file(4096);
    await setUp.read(entry);
    const moved = { ...entry, rev: 'other', path: pathOf(['moved']), name: 'moved' };
    expect((await setUp.read(moved)).equals(bytes)).toBe(true);
    expect(setUp.asked()).toHaveLength(1);
  });

  test('a new revision is never read from the cached blocks of the old one', async () => {
    await setUp.read(setUp.file(4096).entry);
    const next = pseudoRandomBytes(4096, 99);
    expect((await setUp.read(setUp.remote.put(FILM, next))).equals(next)).toBe(true);
  });
});

describe('ranges', () => {
  test('a range is one download of the blocks that it touches', async () => {
    const { bytes, entry } = setUp.file(10 * BLOCK_BYTES);
    const range = { start: BLOCK_BYTES + 5, end: 4 * BLOCK_BYTES + 1 };
    expect((await setUp.read(entry, range)).equals(bytes.subarray(range.start, range.end))).toBe(true);
    expect(setUp.asked()).toEqual([blocks(1, 5)]);
  });

  test('a range deep in a block is downloaded from there on, and the bytes before it only when they are read', async () => {
    const { bytes, entry } = setUp.file(4 * BLOCK_BYTES);
    const deep = 2 * BLOCK_BYTES - JUMP_BYTES;
    const read = async (start: number, end: number) =>
      expect((await setUp.read(entry, { start, end })).equals(bytes.subarray(start, end))).toBe(true);
    await read(deep + 10, deep + 20);
    await settle();
    await read(deep + 10, 2 * BLOCK_BYTES);
    expect(setUp.asked()).toEqual([{ start: deep, end: 2 * BLOCK_BYTES }]);
    await read(deep - 5, deep + 5);
    await settle();
    await read(BLOCK_BYTES, 2 * BLOCK_BYTES);
    expect(setUp.asked().slice(1)).toEqual([{ start: BLOCK_BYTES, end: deep }]);
    const reader = await setUp.restart();
    const again = await joined(reader.read(entry, blocks(1, 2), signal));
    expect(again.equals(bytes.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES))).toBe(true);
    expect(setUp.asked()).toHaveLength(2);
  });

  test('a range that begins deep in a block and continues in the next is one download', async () => {
    const { bytes, entry } = setUp.file(4 * BLOCK_BYTES);
    const range = { start: BLOCK_BYTES / 2 + 1, end: 3 * BLOCK_BYTES - 1 };
    expect((await setUp.read(entry, range)).equals(bytes.subarray(range.start, range.end))).toBe(true);
    expect(setUp.asked()).toEqual([{ start: BLOCK_BYTES / 2, end: 3 * BLOCK_BYTES }]);
  });

  test('a range before one that is being downloaded shares its bytes', async () => {
    const { bytes, entry } = setUp.file(2 * BLOCK_BYTES);
    const deep = { start: BLOCK_BYTES - JUMP_BYTES, end: BLOCK_BYTES - JUMP_BYTES + 9 };
    const reads = [deep, { start: 0, end: BLOCK_BYTES }].map((range) => setUp.read(entry, range));
    const [one, all] = await Promise.all(reads);
    expect(one?.equals(bytes.subarray(deep.start, deep.end))).toBe(true);
    expect(all?.equals(bytes.subarray(0, BLOCK_BYTES))).toBe(true);
    expect(setUp.asked()).toEqual([
      { start: deep.start, end: BLOCK_BYTES },
      { start: 0, end: deep.start },
    ]);
  });

  test('a long range leaves only its first blocks in the cache', async () => {
    const { entry } = setUp.file(20 * BLOCK_BYTES);
    await setUp.read(entry, { start: 1, end: 20 * BLOCK_BYTES });
    await settle();
    const kept = Array.from({ length: 20 }, (_, index) => index).filter((index) =>
      setUp.cache.has({ content: `${entry.contentHash} ${entry.sizeBytes}`, index, sizeBytes: BLOCK_BYTES }),
    );
    expect(Math.max(...kept)).toBe(15);
  });

  test('a range near the end of a file costs its last block', async () => {
    const { bytes, entry } = setUp.file(3 * BLOCK_BYTES + 1000);
    const range = { start: entry.sizeBytes - 10, end: entry.sizeBytes };
    expect((await setUp.read(entry, range)).equals(bytes.subarray(range.start))).toBe(true);
    expect(setUp.asked()).toEqual([{ start: 3 * BLOCK_BYTES, end: entry.sizeBytes }]);
  });

  test('a range beyond the end of a file ends with the file', async () => {
    const { bytes, entry } = setUp.file(1000);
    expect((await setUp.read(entry, { start: 990, end: 5000 })).equals(bytes.subarray(990))).toBe(true);
  });

  test('a range yields its first bytes before the whole block has come', async () => {
    const { bytes, entry } = setUp.file(2 * BLOCK_BYTES);
    setUp.remote.faults = [{ placeholderAt: 65_536 }];
    const iterator = setUp.reader.read(entry, { start: 10, end: 200_000 }, signal)[Symbol.asyncIterator]();
    const first = await iterator.next();
    expect(Buffer.from(first.value ?? []).equals(bytes.subarray(10, 65_536))).toBe(true);
    await iterator.return?.();
  });

  test('a range downloads only the blocks that are not cached', async () => {
    const { bytes, entry } = setUp.file(6 * BLOCK_BYTES);
    await setUp.read(entry, { start: 2 * BLOCK_BYTES, end: 2 * BLOCK_BYTES + JUMP_BYTES + 1 });
    await eventually(() => expect(setUp.remote.openDownloads).toBe(0));
    expect(
      (await setUp.read(entry, { start: 0, end: 5 * BLOCK_BYTES })).equals(
        bytes.subarray(0, 5 * BLOCK_BYTES),
      ),
    ).toBe(true);
    expect(setUp.asked()).toEqual([blocks(2, 3), blocks(0, 2), blocks(3, 5)]);
  });

  test('a second read of a range costs no call, even after a restart', async () => {
    const { bytes, entry } = setUp.file(3 * BLOCK_BYTES);
    const range = { start: 100, end: BLOCK_BYTES + 100 };
    await setUp.read(entry, range);
    await settle();
    expect((await setUp.read(entry, { start: 5000, end: 9000 })).equals(bytes.subarray(5000, 9000))).toBe(
      true,
    );
    const reader = await setUp.restart();
    const again = await joined(reader.read(entry, range, signal));
    expect(again.equals(bytes.subarray(range.start, range.end))).toBe(true);
    expect(setUp.asked()).toEqual([blocks(0, 2)]);
  });
});

describe('blocks on the disk', () => {
  /** A file of some blocks that are nowhere but on the disk. */
  async function stored() {
    const { bytes, entry } = setUp.file(5 * BLOCK_BYTES + 77);
    for (let index = 0; index < 6; index++) {
      const at = index * BLOCK_BYTES;
      await setUp.read(entry, { start: at, end: Math.min(at + BLOCK_BYTES, bytes.length) });
      await eventually(async () => expect(await setUp.blocksOnDisk()).toBeGreaterThan(index));
    }
    return { bytes, entry, reader: await setUp.restart(), calls: setUp.asked().length };
  }

  test('blocks on the disk are read without a call, and the pieces a reader got do not change later', async () => {
    const { bytes, entry, reader, calls } = await stored();
    const range = { start: 1000, end: bytes.length };
    const all = await Promise.all([undefined, range].map((part) => joined(reader.read(entry, part, signal))));
    expect(all[0]?.equals(bytes)).toBe(true);
    expect(all[1]?.equals(bytes.subarray(1000))).toBe(true);
    expect(setUp.asked()).toHaveLength(calls);
  });

  test('a reader may stop anywhere in blocks on the disk', async () => {
    const { bytes, entry, reader, calls } = await stored();
    for (const pieces of [1, 2, 9, 40]) {
      const iterator = reader.read(entry, undefined, signal)[Symbol.asyncIterator]();
      for (let count = 0; count < pieces; count++) await iterator.next();
      await iterator.return?.();
    }
    expect((await joined(reader.read(entry, undefined, signal))).equals(bytes)).toBe(true);
    expect(setUp.asked()).toHaveLength(calls);
  });
});

describe('simultaneous readers', () => {
  test('simultaneous readers of one block share one download', async () => {
    const { bytes, entry } = setUp.file(2 * BLOCK_BYTES);
    const ranges = Array.from({ length: 10 }, (_, index) => ({
      start: index * 1000,
      end: BLOCK_BYTES - index,
    }));
    const all = await Promise.all(ranges.map((range) => setUp.read(entry, range)));
    all.forEach((read, index) => {
      const { start, end } = ranges[index] ?? { start: 0, end: 0 };
      expect(read.equals(bytes.subarray(start, end))).toBe(true);
    });
    expect(setUp.asked()).toEqual([blocks(0, 1)]);
  });

  test('simultaneous readers of a small file share one download', async () => {
    const { bytes, entry } = setUp.file(4096);
    const all = await Promise.all(Array.from({ length: 20 }, () => setUp.read(entry)));
    expect(all.every((read) => read.equals(bytes))).toBe(true);
    expect(setUp.asked()).toHaveLength(1);
  });

  test('simultaneous readers of one long range share one download, block by block', async () => {
    const { bytes, entry } = setUp.file(8 * BLOCK_BYTES);
    const range = blocks(1, 8);
    const all = await Promise.all(Array.from({ length: 4 }, () => setUp.read(entry, range)));
    expect(all.every((read) => read.equals(bytes.subarray(range.start, range.end)))).toBe(true);
    expect(setUp.asked()).toEqual([range]);
  });
});

describe('read-ahead', () => {
  const STEP_BYTES = 512 * 1024;

  async function step(entry: ReturnType<ReaderSetUp['file']>['entry'], index: number) {
    return await setUp.read(entry, { start: index * STEP_BYTES, end: (index + 1) * STEP_BYTES });
  }

  test('a client that reads range after range finds the next blocks downloaded ahead', async () => {
    const { entry } = setUp.file(10 * BLOCK_BYTES);
    await step(entry, 0);
    await step(entry, 1);
    await eventually(() => expect(setUp.asked()).toEqual([blocks(0, 1), blocks(1, 3)]));
    const ahead = setUp.remote.calls.map((call) => call.what === 'download' && call.ahead);
    expect(ahead).toEqual([false, true]);
  });

  test('a sequential client gets the right bytes, and each block is downloaded once', async () => {
    const { bytes, entry } = setUp.file(10 * BLOCK_BYTES);
    for (let index = 0; index < bytes.length / STEP_BYTES; index++)
      expect(
        (await step(entry, index)).equals(bytes.subarray(index * STEP_BYTES, (index + 1) * STEP_BYTES)),
      ).toBe(true);
    await settle();
    expect(setUp.remote.downloadedBytes).toBe(bytes.length);
  });

  test('neither a single read nor one elsewhere in the file starts read-ahead', async () => {
    const { entry } = setUp.file(10 * BLOCK_BYTES);
    await step(entry, 0);
    await step(entry, 40);
    await settle();
    const jump = { start: 5 * BLOCK_BYTES, end: 5 * BLOCK_BYTES + JUMP_BYTES };
    expect(setUp.asked()).toEqual([blocks(0, 1), jump]);
  });

  test('read-ahead is bounded to two blocks', async () => {
    const { entry } = setUp.file(30 * BLOCK_BYTES);
    for (let index = 0; index < 4; index++) await step(entry, index);
    await settle(500);
    expect(setUp.remote.downloadedBytes).toBe(3 * BLOCK_BYTES);
  });
});

describe('the cost of access patterns', () => {
  const STEP_BYTES = 64 * 1024;

  /** Reads ranges of `stepBytes` one after the other and returns the calls and bytes that they cost. */
  async function cost(sizeBytes: number, starts: readonly number[], stepBytes = STEP_BYTES) {
    const { bytes, entry } = setUp.file(sizeBytes);
    const calls = setUp.asked().length;
    const before = setUp.remote.downloadedBytes;
    for (const start of starts) {
      const end = Math.min(sizeBytes, start + stepBytes);
      expect((await setUp.read(entry, { start, end })).equals(bytes.subarray(start, end))).toBe(true);
    }
    await settle();
    return { calls: setUp.asked().length - calls, bytes: setUp.remote.downloadedBytes - before };
  }

  test('a client that reads on after a jump costs two calls for the block', async () => {
    const places = Array.from({ length: 40 }, (_, step) => 5 * BLOCK_BYTES + (step + 10) * STEP_BYTES);
    expect(await cost(6 * BLOCK_BYTES, places)).toEqual({ calls: 2, bytes: BLOCK_BYTES - 10 * STEP_BYTES });
  });

  test('a read of the tail of a file costs one call and only the bytes near the end', async () => {
    const sizeBytes = 9 * BLOCK_BYTES - 100;
    expect(await cost(sizeBytes, [sizeBytes - 1024], 1024)).toEqual({
      calls: 1,
      bytes: expect.closeTo(STEP_BYTES, -5),
    });
  });

  test('an archive directory that is read backwards in small steps costs two calls and one block', async () => {
    const sizeBytes = 9 * BLOCK_BYTES;
    const starts = Array.from({ length: 20 }, (_, step) => sizeBytes - (step + 1) * STEP_BYTES);
    expect(await cost(sizeBytes, starts)).toEqual({ calls: 2, bytes: BLOCK_BYTES });
  });

  test('a film that is read at its start, its end and three other places costs one call and one block for each', async () => {
    const places = [0, 29.5, 7.25, 14.5, 21].map((place) => place * BLOCK_BYTES);
    const { calls, bytes } = await cost(30 * BLOCK_BYTES, places, BLOCK_BYTES / 4);
    expect(calls).toBe(5);
    expect(bytes).toBeLessThanOrEqual(5 * BLOCK_BYTES);
  });

  test('random reads of 64 KiB download at most 16 times the bytes read, with at most one call for each read', async () => {
    let state = 7;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    const blockTotal = 40;
    const starts = Array.from(
      { length: 60 },
      () => Math.floor(random() * blockTotal * 64) * STEP_BYTES + 4096,
    );
    const used = starts.reduce(
      (sum, start) => sum + Math.min(STEP_BYTES, blockTotal * BLOCK_BYTES - start),
      0,
    );
    const { calls, bytes } = await cost(blockTotal * BLOCK_BYTES, starts);
    expect(bytes).toBeLessThanOrEqual(16 * used);
    expect(calls).toBeLessThanOrEqual(starts.length);
    expect(bytes).toBeLessThanOrEqual(blockTotal * BLOCK_BYTES);
  });
});

test('any ranges of any file yield its bytes, with a cold and with a warm cache', async () => {
  const sizeBytes = fc.integer({ min: 1, max: 4 * BLOCK_BYTES });
  const cuts = fc.array(
    fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 1, max: 2 * BLOCK_BYTES })),
    {
      minLength: 1,
      maxLength: 5,
    },
  );
  await fc.assert(
    fc.asyncProperty(
      sizeBytes,
      cuts,
      fc.constantFrom(1000, 65_536, 1_000_003),
      async (size, spans, chunkBytes) => {
        const { bytes, entry } = setUp.file(size);
        setUp.remote.chunkBytes = chunkBytes;
        const ranges = spans.map(([at, length]) => {
          const start = Math.min(size - 1, Math.floor(at * size));
          return { start, end: Math.min(size, start + length) };
        });
        for (const round of ['cold', 'warm']) {
          const reads = await Promise.all(ranges.map((range) => setUp.read(entry, range)));
          reads.forEach((read, index) => {
            const { start, end } = ranges[index] ?? { start: 0, end: 0 };
            expect(read.equals(bytes.subarray(start, end)), `${round} ${start}-${end}`).toBe(true);
          });
        }
        expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      },
    ),
    { numRuns: effort(4) },
  );
});
