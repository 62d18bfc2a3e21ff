import { afterEach, beforeEach, expect, test } from 'vitest';
import { blockKey } from '../../../../src/drive/content/blocks.ts';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { joined } from '../../../support/byte-source.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ReaderSetUp, setUpReader } from '../../../support/readers.ts';

const BLOCKS = 3;
const HOUR_MS = 3_600_000;
const rangeOf = (index: number) => ({ start: index * BLOCK_BYTES, end: (index + 1) * BLOCK_BYTES });

let setUp: ReaderSetUp;
let bytes: Buffer;
let entry: ReturnType<ReaderSetUp['file']>['entry'];
beforeEach(async () => {
  setUp = await setUpReader();
  ({ bytes, entry } = setUp.file(BLOCKS * BLOCK_BYTES));
});
afterEach(() => setUp.close());

/** Reads the file range by range; the first range is damaged in transit. */
async function readDamaged(): Promise<void> {
  setUp.remote.faults = [{ flipAt: 1_000 }];
  for (let index = 0; index < BLOCKS; index++) await setUp.read(entry, rangeOf(index));
}

test('a damaged cached range is replaced once all blocks of its file are cached', async () => {
  await readDamaged();
  await eventually(async () => {
    const read = await setUp.read(entry, rangeOf(0));
    expect(read.equals(bytes.subarray(0, BLOCK_BYTES))).toBe(true);
  });
});

test('a whole read with a damaged cached block yields the right bytes and is not cut', async () => {
  await readDamaged();
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
});

test('a damaged range of a partly cached file is downloaded again after an hour', async () => {
  setUp.remote.faults = [{ flipAt: 1_000 }];
  const right = bytes.subarray(0, BLOCK_BYTES);
  expect((await setUp.read(entry, rangeOf(0))).equals(right)).toBe(false);
  await setUp.clock.advance(HOUR_MS - 1);
  await setUp.read(entry, rangeOf(0));
  expect(setUp.asked()).toHaveLength(1);
  await setUp.clock.advance(1);
  expect((await setUp.read(entry, rangeOf(0))).equals(right)).toBe(true);
  expect(setUp.asked()).toHaveLength(2);
});

test('a damaged block from an earlier run is downloaded again an hour after it was first read', async () => {
  setUp.remote.faults = [{ flipAt: 1_000 }];
  await setUp.read(entry, rangeOf(0));
  const reader = await setUp.restart();
  const read = () => joined(reader.read(entry, rangeOf(0), new AbortController().signal));
  await read();
  expect(setUp.asked()).toHaveLength(1);
  await setUp.clock.advance(HOUR_MS);
  expect((await read()).equals(bytes.subarray(0, BLOCK_BYTES))).toBe(true);
});

test('a damaged block of a file that was checked before is refused, and downloaded again by the next read', async () => {
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  setUp.cache.forget(blockKey(entry, 1));
  setUp.remote.faults = [{ flipAt: BLOCK_BYTES + 1_000 }];
  await expect(setUp.read(entry, rangeOf(1))).rejects.toMatchObject({ fault: 'broken' });
  const right = bytes.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES);
  expect((await setUp.read(entry, rangeOf(1))).equals(right)).toBe(true);
});

test('a whole read of a checked file downloads only the blocks that are missing, and refuses a damaged one', async () => {
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  setUp.cache.forget(blockKey(entry, 1));
  setUp.remote.faults = [{ flipAt: BLOCK_BYTES + 1_000 }];
  await expect(setUp.read(entry)).rejects.toMatchObject({ fault: 'broken' });
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  expect(setUp.asked()).toEqual([undefined, rangeOf(1), rangeOf(1)]);
});

test('a part of a block that a range brought without a check is downloaded again by a whole read', async () => {
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  setUp.cache.forget(blockKey(entry, 1));
  const part = { start: BLOCK_BYTES + 3 * 1024 * 1024, end: BLOCK_BYTES + 3 * 1024 * 1024 + 1_000 };
  setUp.remote.faults = [{ flipAt: part.start + 10 }];
  expect((await setUp.read(entry, part)).equals(bytes.subarray(part.start, part.end))).toBe(false);
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
});

test('a damaged block that a range has brought behind a whole read is downloaded again by the next whole read', async () => {
  const whole = setUp.reader.read(entry, undefined, new AbortController().signal)[Symbol.asyncIterator]();
  let position = 0;
  const readTo = async (end: number) => {
    while (position < end) {
      const { value } = await whole.next();
      if (!value) throw new Error('the file ended early');
      position += value.length;
    }
  };
  await readTo(BLOCK_BYTES + 1);
  setUp.cache.forget(blockKey(entry, 0));
  setUp.remote.faults = [{ flipAt: 10 }];
  await setUp.read(entry, { start: 0, end: 1_000 });
  await eventually(async () => expect(setUp.cache.has(blockKey(entry, 0))).toBe(true));
  await readTo(bytes.length);
  expect(await whole.next()).toMatchObject({ done: true });
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
});

test('cached blocks of a checked file are read for days without a call', async () => {
  for (let index = 0; index < BLOCKS; index++) await setUp.read(entry, rangeOf(index));
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  const { length } = setUp.asked();
  for (let day = 0; day < 3; day++) {
    await setUp.clock.advance(24 * HOUR_MS);
    await setUp.read(entry, rangeOf(1));
  }
  expect(setUp.asked()).toHaveLength(length);
});

test('a file without a content hash is downloaded again after an hour, even by whole reads', async () => {
  const { contentHash: _, ...unhashed } = entry;
  setUp.remote.faults = [{ flipAt: 1_000 }];
  expect((await setUp.read(unhashed)).equals(bytes)).toBe(false);
  await setUp.clock.advance(HOUR_MS);
  expect((await setUp.read(unhashed)).equals(bytes)).toBe(true);
});

test('the check of cached blocks downloads no right block again', async () => {
  for (let index = 0; index < BLOCKS; index++) await setUp.read(entry, rangeOf(index));
  const { length } = setUp.asked();
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  expect((await setUp.read(entry, rangeOf(1))).equals(bytes.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES))).toBe(
    true,
  );
  expect(setUp.asked()).toHaveLength(length);
});
