import { afterEach, beforeEach, expect, test } from 'vitest';
import { BlockBuffers } from '../../../../src/drive/content/block-buffers.ts';
import { blockKey } from '../../../../src/drive/content/blocks.ts';
import { CachedSpans, type Span } from '../../../../src/drive/content/cached-spans.ts';
import { BLOCK_BYTES } from '../../../../src/util/content-hash.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type ReaderSetUp, setUpReader } from '../../../support/readers.ts';

const READERS = 40;

let setUp: ReaderSetUp;
beforeEach(async () => {
  setUp = await setUpReader();
});
afterEach(() => setUp.close());

test('many slow readers use a bounded number of block buffers, and return them all', async () => {
  const bytes = pseudoRandomBytes(2 * BLOCK_BYTES, 1);
  const entry = setUp.remote.put(pathOf(['film.bin']), bytes);
  for (const index of [0, 1]) {
    const block = bytes.subarray(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES);
    setUp.cache.keep(blockKey(entry, index), block);
  }
  const buffers = new BlockBuffers();
  const readers = Array.from({ length: READERS }, () => ({
    spans: new CachedSpans(setUp.cache, buffers, entry, bytes.length),
    position: 0,
  }));
  const held: Span[] = [];
  for (const round of ['first', 'next']) {
    for (const reader of readers) {
      const span = await reader.spans.take(reader.position);
      if (!span) throw new Error(`the ${round} span is not there`);
      const got = Buffer.from(span.bytes);
      expect(got.equals(bytes.subarray(reader.position, reader.position + span.bytes.length))).toBe(true);
      reader.position += span.bytes.length;
      held.push(span);
    }
  }
  const whole = held.filter(({ bytes: spanBytes }) => spanBytes.length > BLOCK_BYTES / 2);
  expect(whole.length).toBeGreaterThan(0);
  expect(whole.length).toBeLessThanOrEqual(8);
  expect(buffers.isBusy).toBe(true);
  for (const span of held) span.release();
  for (const { spans } of readers) spans.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(buffers.isBusy).toBe(false);
});
