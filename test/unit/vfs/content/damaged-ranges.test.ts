import { afterEach, beforeEach, expect, test } from 'vitest';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ReaderSetUp, setUpReader } from '../../../support/readers.ts';

const BLOCKS = 3;
const rangeOf = (index: number) => ({ start: index * BLOCK_BYTES, end: (index + 1) * BLOCK_BYTES });

let setUp: ReaderSetUp;
let bytes: Buffer;
let entry: ReturnType<ReaderSetUp['file']>['entry'];
beforeEach(async () => {
  setUp = await setUpReader();
  ({ bytes, entry } = setUp.file(BLOCKS * BLOCK_BYTES));
});
afterEach(() => setUp.close());

/** Reads the file range by range, the first one damaged on its way. */
async function readDamaged(): Promise<void> {
  setUp.remote.faults = [{ flipAt: 1_000 }];
  for (let index = 0; index < BLOCKS; index++) await setUp.read(entry, rangeOf(index));
}

test('a damaged range is right again once all blocks of its file are in the cache', async () => {
  await readDamaged();
  await eventually(async () => {
    const read = await setUp.read(entry, rangeOf(0));
    expect(read.equals(bytes.subarray(0, BLOCK_BYTES))).toBe(true);
  });
});

test('a whole read with one damaged cached block is right, and is not cut', async () => {
  await readDamaged();
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
});

test('cached blocks that are right are not fetched again by the check', async () => {
  for (let index = 0; index < BLOCKS; index++) await setUp.read(entry, rangeOf(index));
  const { length } = setUp.asked();
  expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  expect((await setUp.read(entry, rangeOf(1))).equals(bytes.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES))).toBe(
    true,
  );
  expect(setUp.asked()).toHaveLength(length);
});
