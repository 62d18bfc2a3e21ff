import { afterEach, describe, expect, test, vi } from 'vitest';
import { BlockThread } from '../../../../src/drive/content/block-thread.ts';
import type { FileEntry } from '../../../../src/drive/files.ts';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ReaderSetUp, setUpReader } from '../../../support/readers.ts';

/** More blocks than the cache keeps of any other read. */
const BLOCKS = 20;
const BYTES = pseudoRandomBytes(BLOCKS * BLOCK_BYTES, 1);

let setUp: ReaderSetUp;
afterEach(async () => {
  vi.restoreAllMocks();
  await setUp.close();
});

/** Puts a file that the service sends no faster than the disk stores it. */
async function open(roomBytes: number): Promise<FileEntry> {
  setUp = await setUpReader({ sizeBytesMax: roomBytes });
  const { remote, blocksOnDisk } = setUp;
  remote.pace = async () => {
    const written = remote.downloadedBytes / BLOCK_BYTES - 1;
    if (Number.isInteger(written) && written > 0)
      await eventually(async () => expect(await blocksOnDisk()).toBeGreaterThanOrEqual(written), 1);
  };
  return remote.put(pathOf(['film.bin']), BYTES);
}

function keptBlocks({ contentHash, sizeBytes }: FileEntry): number[] {
  const content = `${contentHash} ${sizeBytes}`;
  return [...Array(BLOCKS).keys()].filter((index) =>
    setUp.cache.has({ content, index, sizeBytes: BLOCK_BYTES }),
  );
}

describe('whole reads of long files', () => {
  test('a long file that was read whole is cached, and not downloaded again', async () => {
    const entry = await open(4 * BYTES.length);
    expect((await setUp.read(entry)).equals(BYTES)).toBe(true);
    expect(keptBlocks(entry)).toEqual([...Array(BLOCKS).keys()]);
    expect((await setUp.read(entry)).equals(BYTES)).toBe(true);
    expect(setUp.remote.calls).toHaveLength(1);
  });

  test('a long file is cached whole though the service sends it faster than the disk stores it', async () => {
    const entry = await open(4 * BYTES.length);
    setUp.remote.pace = async () => {};
    expect((await setUp.read(entry)).equals(BYTES)).toBe(true);
    expect(keptBlocks(entry)).toEqual([...Array(BLOCKS).keys()]);
  });

  test('a reader waits 50 ms for a disk that takes no block, and the rest of the file is not cached', async () => {
    const entry = await open(4 * BYTES.length);
    setUp.remote.pace = async () => {};
    let fail = (_reason: Error): void => undefined;
    const stuck = new Promise<number>((_, reject) => {
      fail = reject;
    });
    vi.spyOn(BlockThread.prototype, 'write').mockReturnValue(stuck);
    const { clock } = setUp;
    const start = clock.now();
    const read = await clock.during(setUp.read(entry));
    expect(read.equals(BYTES)).toBe(true);
    expect(clock.now() - start).toBeGreaterThanOrEqual(50);
    expect(clock.now() - start).toBeLessThan(1_000);
    expect(keptBlocks(entry).length).toBeLessThan(BLOCKS);
    fail(new Error('the disk was unplugged'));
  });

  test('a long file is not cached beyond the block at which the disk falls behind', async () => {
    const entry = await open(4 * BYTES.length);
    const keep = setUp.cache.keep.bind(setUp.cache);
    vi.spyOn(setUp.cache, 'keep').mockImplementation(
      (block, bytes, options) => block.index !== 17 && keep(block, bytes, options),
    );
    setUp.remote.pace = async () => {};
    await setUp.read(entry);
    expect(Math.max(...keptBlocks(entry))).toBeLessThan(17);
  });

  test('a long file that would take more than a quarter of the cache is not cached', async () => {
    const entry = await open(4 * BYTES.length - 1);
    setUp.remote.pace = async () => {};
    await setUp.read(entry);
    expect(keptBlocks(entry)).toEqual([]);
  });
});
