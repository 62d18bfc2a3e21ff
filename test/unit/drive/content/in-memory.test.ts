import { afterEach, beforeEach, expect, test } from 'vitest';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { joined } from '../../../support/byte-source.ts';
import { type ReaderSetUp, setUpReader } from '../../../support/readers.ts';

const signal = new AbortController().signal;

let setUp: ReaderSetUp;
beforeEach(async () => {
  setUp = await setUpReader();
});
afterEach(() => setUp.close());

test('a short file that was read is in memory, also when it was read from the disk after a restart', async () => {
  const { bytes, entry } = setUp.file(4096);
  expect(setUp.reader.inMemory(entry)).toBeUndefined();
  await setUp.read(entry);
  expect(setUp.reader.inMemory(entry)).toEqual(bytes);
  const reader = await setUp.restart();
  expect(reader.inMemory(entry)).toBeUndefined();
  await joined(reader.read(entry, undefined, signal));
  expect(reader.inMemory(entry)).toEqual(bytes);
});

test('a long file, and one that could not be checked, are not lent from memory', async () => {
  const { entry: long } = setUp.file(2 * BLOCK_BYTES);
  const { entry: pooled } = setUp.file(BLOCK_BYTES);
  const { contentHash: _none, ...unchecked } = setUp.file(4096).entry;
  for (const entry of [long, pooled, unchecked]) {
    await setUp.read(entry);
    expect(setUp.reader.inMemory(entry)).toBeUndefined();
  }
});
