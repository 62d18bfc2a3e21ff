import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BLOCK_BYTES, contentHashOf } from '../../../../src/util/content-hash.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type ReaderSetUp, settle, setUpReader } from '../../../support/readers.ts';

const PATH = pathOf(['film.bin']);
/** Enough blocks for the number of connections to settle in the first half. */
const BLOCKS = 24;
const bytes = pseudoRandomBytes(BLOCKS * BLOCK_BYTES, 3);
const contentHash = contentHashOf(bytes);
const whole = undefined;
const part = { start: BLOCK_BYTES / 2, end: bytes.length - 5 };

let setUp: ReaderSetUp;
let entry: ReturnType<ReaderSetUp['remote']['put']>;
beforeEach(async () => {
  setUp = await setUpReader();
  setUp.remote.chunkBytes = 1024 * 1024;
  entry = setUp.remote.put(PATH, bytes, contentHash);
});
afterEach(() => setUp.close());

/** Limits the speed of each connection, or of all connections together, and records how many are open. */
function limit(bytesPerMs: number, of: 'each' | 'all'): { most: number } {
  const { remote, clock } = setUp;
  const seen = { most: 0 };
  remote.pace = (sizeBytes, signal) => {
    seen.most = Math.max(seen.most, remote.openDownloads);
    return clock.sleep((sizeBytes / bytesPerMs) * (of === 'all' ? remote.openDownloads : 1), signal);
  };
  return seen;
}

async function read(range: typeof part | undefined): Promise<void> {
  const got = await setUp.clock.during(setUp.read(entry, range));
  expect(got.equals(bytes.subarray(range?.start ?? 0, range?.end))).toBe(true);
  await settle();
  expect(setUp.remote.openDownloads).toBe(0);
}

const ranges = [
  { what: 'a whole file', range: whole },
  { what: 'a long range', range: part },
];

describe.each(ranges)('$what', ({ what, range }) => {
  test(`${what} is downloaded over several connections when the service limits each of them`, async () => {
    const seen = limit(4000, 'each');
    await read(range);
    expect(seen.most).toBe(4);
    // Only the chunk in flight on the first connection may have been downloaded twice.
    expect(setUp.remote.downloadedBytes - bytes.length).toBeLessThanOrEqual(setUp.remote.chunkBytes);
  });

  test(`${what} is read in at most 7 downloads, one of them over half the file, when all connections share a full line`, async () => {
    limit(4000, 'all');
    await read(range);
    const calls = setUp.remote.calls.flatMap((call) => (call.what === 'download' ? [call.range] : []));
    expect(calls.length).toBeLessThanOrEqual(7);
    expect((calls.at(-1)?.end ?? 0) - (calls.at(-1)?.start ?? 0)).toBeGreaterThan((BLOCKS / 2) * BLOCK_BYTES);
  });

  test(`${what} is one download when the service is fast`, async () => {
    limit(40_000, 'each');
    await read(range);
    expect(setUp.remote.countOf('download')).toBe(1);
  });

  test(`${what} is one download when the client is slow`, async () => {
    const { clock, remote, reader } = setUp;
    limit(40_000, 'each');
    const chunks: Uint8Array[] = [];
    await clock.during(
      (async () => {
        for await (const chunk of reader.read(entry, range, new AbortController().signal)) {
          chunks.push(Buffer.from(chunk));
          await clock.sleep(500);
        }
      })(),
    );
    expect(Buffer.concat(chunks).equals(bytes.subarray(range?.start ?? 0, range?.end))).toBe(true);
    expect(remote.countOf('download')).toBe(1);
  });

  test(`${what} is read right from a service that limits and cuts connections`, async () => {
    limit(4000, 'each');
    setUp.remote.faults = [0, 1, 7, 9, 11, 12, 18].map((block) => ({ cutAt: block * BLOCK_BYTES + 1000 }));
    await read(range);
  });

  test(`all connections of ${what} end at once when its reader goes away`, async () => {
    const { remote, clock } = setUp;
    limit(4000, 'each');
    const leaver = new AbortController();
    const got = setUp.read(entry, range, leaver.signal).catch((failure) => failure);
    while (remote.openDownloads < 4) {
      await settle(5);
      await clock.advance(100);
    }
    leaver.abort(new Error('gone'));
    expect(await got).toMatchObject({ message: 'gone' });
    await settle();
    expect(remote.openDownloads).toBe(0);
    expect(clock.sleeping).toBe(0);
  });
});

test('several slow readers at once each get their own bytes over a bounded number of connections', async () => {
  const seen = limit(4000, 'each');
  const reads = Array.from({ length: 5 }, (_, index) =>
    setUp.read({ ...entry, contentHash: `other ${index}` }, { start: 1, end: 12 * BLOCK_BYTES }),
  );
  const all = await setUp.clock.during(Promise.all(reads));
  for (const got of all) expect(got.equals(bytes.subarray(1, 12 * BLOCK_BYTES))).toBe(true);
  expect(seen.most).toBeLessThanOrEqual(5 + 6);
  await settle();
  expect(setUp.remote.openDownloads).toBe(0);
});
