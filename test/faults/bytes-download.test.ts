import { getEventListeners } from 'node:events';
import { rm } from 'node:fs/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../src/api/errors.ts';
import type { FileEntry } from '../../src/drive/files.ts';
import { elapsedMs } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import type { ByteRange } from '../../src/util/ranges.ts';
import { joined } from '../support/byte-source.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import type { DownloadFault } from '../support/bytes-remote.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { FILM, type ReaderSetUp, settle, setUpReader } from '../support/readers.ts';

let setUp: ReaderSetUp;
beforeEach(async () => {
  setUp = await setUpReader();
});
afterEach(() => setUp.close());

/** Reads until the end or a failure; returns the bytes before it. */
async function attempt(entry: FileEntry, range?: ByteRange, signal = new AbortController().signal) {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of setUp.reader.read(entry, range, signal)) chunks.push(Buffer.from(chunk));
    return { bytes: Buffer.concat(chunks), failure: undefined };
  } catch (failure) {
    return { bytes: Buffer.concat(chunks), failure };
  }
}

/** Advances the clock until `work` is done. */
async function advanceUntilDone<Value>(work: Promise<Value>): Promise<Value> {
  let isDone = false;
  const ended = work.finally(() => {
    isDone = true;
  });
  ended.catch(() => {});
  while (!isDone) {
    await settle(5);
    await setUp.clock.advance(1000);
  }
  return await ended;
}

const SIZE = 2 * BLOCK_BYTES + 777;

describe('a download that is cut', () => {
  const places = [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 5, SIZE - 1];
  test.each(places)('a whole read whose download is cut at byte %d continues from there', async (cutAt) => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ cutAt }];
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    expect(setUp.asked()).toEqual([undefined, cutAt === 0 ? undefined : { start: cutAt, end: SIZE }]);
    expect(setUp.remote.downloadedBytes).toBe(SIZE);
  });

  test.each(places)(
    'a range read whose download is cut at byte %d returns the right bytes',
    async (cutAt) => {
      const { bytes, entry } = setUp.file(SIZE);
      setUp.remote.faults = [{ cutAt }];
      const range = { start: 3, end: SIZE - 3 };
      expect((await setUp.read(entry, range)).equals(bytes.subarray(range.start, range.end))).toBe(true);
      // The rest of the last block is still downloaded for the cache.
      await eventually(() => expect(setUp.remote.downloadedBytes).toBe(SIZE));
    },
  );

  test('a read whose download ends early without an error returns the right bytes', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ endAt: BLOCK_BYTES + 9 }];
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  });

  test('a read whose download is cut 19 times and gains bytes each time returns the right bytes', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = Array.from({ length: 19 }, (_, index) => ({
      cutAt: (index + 1) * Math.floor(SIZE / 20),
    }));
    expect((await advanceUntilDone(setUp.read(entry))).equals(bytes)).toBe(true);
  });

  test('a read whose download is cut 20 times at the same byte returns the right bytes', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = Array.from({ length: 20 }, () => ({ cutAt: 100 }));
    expect((await advanceUntilDone(setUp.read(entry))).equals(bytes)).toBe(true);
  });

  test('a read whose download makes no progress fails after 25 s', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    const cutAt = BLOCK_BYTES + 100;
    setUp.remote.faults = Array.from({ length: 100 }, () => ({ cutAt }));
    const start = setUp.clock.instant();
    const outcome = await advanceUntilDone(attempt(entry));
    expect(outcome.failure).toMatchObject({ name: 'ApiError', failure: 'offline' });
    expect(outcome.bytes.equals(bytes.subarray(0, cutAt))).toBe(true);
    expect(setUp.asked().length).toBeLessThan(40);
    expect(elapsedMs(setUp.clock, start)).toBeGreaterThanOrEqual(25_000);
    expect(elapsedMs(setUp.clock, start)).toBeLessThan(30_000);
    expect(setUp.clock.sleeping).toBe(0);
  });

  test('an abort ends the wait before the next try of a download that was cut', async () => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = Array.from({ length: 9 }, () => ({ cutAt: 100 }));
    const controller = new AbortController();
    const outcome = attempt(entry, undefined, controller.signal);
    await setUp.clock.untilSleeping();
    controller.abort(new Error('gone'));
    expect((await outcome).failure).toMatchObject({ message: 'gone' });
    expect(setUp.clock.sleeping).toBe(0);
  });

  test('a read whose download is cut fails with not-found when the revision is gone at the next try', async () => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ cutAt: 5000 }];
    let downloads = 0;
    setUp.remote.before = () => {
      if (++downloads === 2) throw new ApiError('not-found', 'path/not_found');
    };
    const { bytes, failure } = await attempt(entry);
    expect(failure).toMatchObject({ failure: 'not-found' });
    expect(bytes.length).toBe(5000);
  });

  test('reads whose downloads are cut at random bytes return the right bytes', async () => {
    const cuts = fc.array(fc.integer({ min: 0, max: SIZE }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (places, whole) => {
        const { bytes, entry } = setUp.file(SIZE);
        setUp.remote.faults = places.map((cutAt) => ({ cutAt }));
        const range = whole ? undefined : { start: 1, end: SIZE };
        const { contentHash: _none, ...bare } = { ...entry, rev: entry.rev };
        // Without a hash each read counts as other content: nothing comes from the cache.
        const read = await advanceUntilDone(setUp.read(whole ? entry : bare, range));
        expect(read.equals(bytes.subarray(range?.start ?? 0))).toBe(true);
      }),
      { numRuns: effort(4) },
    );
  });
});

describe('damaged bytes', () => {
  test.each([0, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES - 1])(
    'a read of a file fails after two blocks when their byte %d is damaged',
    async (flipAt) => {
      const { entry } = setUp.file(SIZE);
      setUp.remote.faults = [{ flipAt }];
      const { bytes, failure } = await attempt(entry);
      expect(failure).toMatchObject({ name: 'FileError', fault: 'broken' });
      expect(bytes.length).toBe(2 * BLOCK_BYTES);
    },
  );

  test.each([2 * BLOCK_BYTES, SIZE - 1])(
    'a read of a file downloads the last block again when its byte %d is damaged',
    async (flipAt) => {
      const { bytes, entry } = setUp.file(SIZE);
      setUp.remote.faults = [{ flipAt }];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      expect(setUp.asked()).toEqual([undefined, { start: 2 * BLOCK_BYTES, end: SIZE }]);
    },
  );

  test('a read of a file fails when the last block is damaged twice', async () => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ flipAt: SIZE - 1 }, { flipAt: SIZE - 1 }];
    const { bytes, failure } = await attempt(entry);
    expect(failure).toMatchObject({ fault: 'broken' });
    expect(bytes.length).toBe(2 * BLOCK_BYTES);
  });

  test.each([0, 2000, BLOCK_BYTES - 1])(
    'a read of a small file downloads it again when byte %d is damaged',
    async (flipAt) => {
      const { bytes, entry } = setUp.file(BLOCK_BYTES);
      setUp.remote.faults = [{ flipAt }];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      expect(setUp.asked()).toEqual([undefined, undefined]);
    },
  );

  test('a read of a small file that is damaged twice fails before the first byte', async () => {
    const { entry } = setUp.file(4096);
    setUp.remote.faults = [{ flipAt: 7 }, { flipAt: 7 }];
    const { bytes, failure } = await attempt(entry);
    expect(failure).toMatchObject({ fault: 'broken' });
    expect(bytes.length).toBe(0);
  });

  test('damaged bytes do not stay in the cache', async () => {
    for (const size of [4096, SIZE]) {
      const { bytes, entry } = setUp.file(size);
      setUp.remote.faults = [{ flipAt: 7 }, { flipAt: 7 }];
      expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
      setUp.remote.faults = [];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    }
  });

  test('a whole read finds the damaged bytes that a range read left in the cache, and drops them', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ flipAt: 7 }];
    await setUp.read(entry, { start: 0, end: BLOCK_BYTES });
    expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  });

  test('a range read to the end of a small file with a damaged byte fails', async () => {
    const { entry } = setUp.file(200_000);
    setUp.remote.faults = [{ flipAt: 7 }];
    const { failure } = await attempt(entry, { start: 1, end: 200_000 });
    expect(failure).toMatchObject({ fault: 'broken' });
  });

  test('a read whose download returns another revision fails', async () => {
    const { entry } = setUp.file(SIZE);
    const download = setUp.remote.download.bind(setUp.remote);
    setUp.remote.download = async (...call) => ({
      ...(await download(...call)),
      file: { ...entry, rev: 'other' },
    });
    expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
  });

  test('a read that gets more bytes than its entry says fails, and a range read of the same entry does not', async () => {
    const { entry } = setUp.file(SIZE);
    const longer = { ...entry, sizeBytes: SIZE - 5 };
    expect((await attempt(longer)).failure).toMatchObject({ fault: 'broken' });
    expect((await attempt(longer, { start: 9, end: SIZE - 5 })).failure).toBeUndefined();
  });
});

describe('a reader that stops early', () => {
  const cases: {
    readonly what: string;
    readonly range: ByteRange | undefined;
    readonly fault: DownloadFault;
  }[] = [
    { what: 'a whole read', range: undefined, fault: { placeholderAt: 100_000 } },
    { what: 'a whole read before its first byte', range: undefined, fault: { placeholderAt: 0 } },
    { what: 'a range', range: { start: 1, end: 2 * BLOCK_BYTES }, fault: { placeholderAt: 100_000 } },
    {
      what: 'a range in its second block',
      range: { start: 1, end: 2 * BLOCK_BYTES },
      fault: { placeholderAt: BLOCK_BYTES + 5 },
    },
  ];

  test.each(cases)('$what that is aborted by its signal ends its download', async ({ range, fault }) => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = [fault];
    const controller = new AbortController();
    const outcome = attempt(entry, range, controller.signal);
    await eventually(() => expect(setUp.remote.openDownloads).toBe(1));
    await settle();
    controller.abort(new Error('gone'));
    expect((await outcome).failure).toMatchObject({ message: 'gone' });
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
  });

  test.each(cases)('$what that is no longer iterated ends its download', async ({ range, fault }) => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = [fault];
    const iterator = setUp.reader.read(entry, range, new AbortController().signal)[Symbol.asyncIterator]();
    const reading = (async () => {
      while (!(await iterator.next()).done);
    })().catch((failure) => failure);
    await eventually(() => expect(setUp.remote.openDownloads).toBe(1));
    await settle();
    await iterator.return?.();
    expect(await reading).toBeInstanceOf(Error);
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
  });

  test('an abort ends the download while no piece is requested, and the next request fails', async () => {
    for (const range of [undefined, { start: 1, end: 2 * BLOCK_BYTES }]) {
      const { entry } = setUp.file(SIZE);
      const controller = new AbortController();
      const iterator = setUp.reader.read(entry, range, controller.signal)[Symbol.asyncIterator]();
      await iterator.next();
      controller.abort(new Error('gone'));
      await settle();
      expect(setUp.remote.openDownloads).toBe(0);
      await expect(iterator.next()).rejects.toThrow('gone');
    }
  });

  test('a read with an aborted signal starts no download', async () => {
    const { entry } = setUp.file(SIZE);
    for (const range of [undefined, { start: 1, end: 5 }])
      expect((await attempt(entry, range, AbortSignal.abort(new Error('gone')))).failure).toMatchObject({
        message: 'gone',
      });
    expect(setUp.asked()).toEqual([]);
  });

  test('a download goes on for a second reader of the same block when the first one aborts', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ placeholderAt: 100_000 }];
    const controller = new AbortController();
    const left = attempt(entry, { start: 0, end: 2 * BLOCK_BYTES }, controller.signal);
    const stayed = attempt(entry, { start: 50, end: BLOCK_BYTES });
    await settle();
    controller.abort(new Error('gone'));
    expect((await left).failure).toMatchObject({ message: 'gone' });
    setUp.remote.release();
    expect((await stayed).bytes.equals(bytes.subarray(50, BLOCK_BYTES))).toBe(true);
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
    expect(setUp.asked()).toHaveLength(1);
    expect(setUp.remote.downloadedBytes).toBeLessThan(2 * BLOCK_BYTES);
  });

  test('an abort ends the read-ahead downloads of its reader', async () => {
    const { entry } = setUp.file(SIZE);
    await setUp.read(entry, { start: 0, end: 1000 });
    await settle();
    setUp.remote.faults = [{ placeholderAt: BLOCK_BYTES + 100 }];
    const controller = new AbortController();
    const iterator = setUp.reader
      .read(entry, { start: 1000, end: 2000 }, controller.signal)
      [Symbol.asyncIterator]();
    await iterator.next();
    await eventually(() => expect(setUp.remote.openDownloads).toBe(1));
    controller.abort(new Error('gone'));
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
  });

  test('reads leave no listener on their signal', async () => {
    const { entry } = setUp.file(SIZE);
    const { signal } = new AbortController();
    await setUp.read(entry, undefined, signal);
    await setUp.read(entry, { start: 5, end: SIZE }, signal);
    setUp.remote.before = () => {
      throw new ApiError('offline', 'away');
    };
    await attempt(setUp.remote.put(FILM, pseudoRandomBytes(9, 9)), undefined, signal);
    for await (const _chunk of setUp.reader.read(entry, undefined, signal)) break;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

test('a range near the start of a file puts its whole block into the cache', async () => {
  const { entry } = setUp.file(SIZE);
  await setUp.read(entry, { start: 10, end: 20 });
  await settle(200);
  expect(setUp.remote.downloadedBytes).toBe(BLOCK_BYTES);
  await setUp.read(entry, { start: BLOCK_BYTES - 10, end: BLOCK_BYTES });
  expect(setUp.asked()).toHaveLength(1);
});

test('a refused download fails all readers of its block, and the next reader downloads it', async () => {
  const { bytes, entry } = setUp.file(SIZE);
  const refusal = new ApiError('unavailable', '503');
  setUp.remote.before = () => {
    throw refusal;
  };
  const range = { start: 5, end: 500 };
  const outcomes = await Promise.all([attempt(entry, range), attempt(entry, range), attempt(entry, range)]);
  expect(outcomes.map(({ failure }) => failure)).toEqual([refusal, refusal, refusal]);
  expect(setUp.asked()).toHaveLength(1);
  setUp.remote.before = () => {};
  expect((await setUp.read(entry, range)).equals(bytes.subarray(5, 500))).toBe(true);
});

test('a download waits for a slow reader and is at most one block ahead', async () => {
  const { entry } = setUp.file(SIZE);
  for (const range of [undefined, { start: 1, end: entry.sizeBytes }]) {
    const before = setUp.remote.downloadedBytes;
    const iterator = setUp.reader.read(entry, range, new AbortController().signal)[Symbol.asyncIterator]();
    await iterator.next();
    await settle(500);
    expect(setUp.remote.downloadedBytes - before).toBeLessThanOrEqual(BLOCK_BYTES);
    await iterator.return?.();
  }
});

test('reads go on when the cache directory is deleted', async () => {
  const { bytes, entry } = setUp.file(SIZE);
  await setUp.read(entry, { start: 0, end: SIZE - 1 });
  const reader = await setUp.restart();
  await rm(setUp.directory, { recursive: true });
  const range = { start: 1, end: SIZE };
  const read = await joined(reader.read(entry, range, new AbortController().signal));
  expect(read.equals(bytes.subarray(1))).toBe(true);
});
