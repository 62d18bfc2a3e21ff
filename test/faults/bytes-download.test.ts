import { rm } from 'node:fs/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ApiError } from '../../src/api/errors.ts';
import type { FileEntry } from '../../src/drive/files.ts';
import { elapsedMs } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import type { ByteRange } from '../../src/util/ranges.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import type { DownloadFault } from '../support/bytes-remote.ts';
import { effort } from '../support/effort.ts';
import { eventually } from '../support/eventually.ts';
import { collect, FILM, type ReaderSetUp, settle, setUpReader } from '../support/readers.ts';

let setUp: ReaderSetUp;
beforeEach(async () => {
  setUp = await setUpReader();
});
afterEach(() => setUp.close());

/** What a reader got before it ended or threw. */
async function attempt(entry: FileEntry, range?: ByteRange, signal = new AbortController().signal) {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of setUp.reader.read(entry, range, signal)) chunks.push(chunk);
    return { bytes: Buffer.concat(chunks), failure: undefined };
  } catch (failure) {
    return { bytes: Buffer.concat(chunks), failure };
  }
}

/** Reads on while time passes for whoever sleeps. */
async function inTime<Value>(work: Promise<Value>): Promise<Value> {
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

const SIZE = 3 * BLOCK_BYTES + 777;

describe('a download that is cut goes on where it broke', () => {
  const places = [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES + 5, SIZE - 1];
  test.each(places)('at byte %d of a whole read', async (cutAt) => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ cutAt }];
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    expect(setUp.asked()).toEqual([undefined, cutAt === 0 ? undefined : { start: cutAt, end: SIZE }]);
    expect(setUp.remote.downloadedBytes).toBe(SIZE);
  });

  test.each(places)('at byte %d of a range', async (cutAt) => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ cutAt }];
    const range = { start: 3, end: SIZE - 3 };
    expect((await setUp.read(entry, range)).equals(bytes.subarray(range.start, range.end))).toBe(true);
    // The rest of the last block still comes, for the cache.
    await eventually(() => expect(setUp.remote.downloadedBytes).toBe(SIZE));
  });

  test('also when the answer only ends, without an error', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ endAt: BLOCK_BYTES + 9 }];
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  });

  test('many times, as long as it gets on', async () => {
    const { bytes, entry } = setUp.file(40 * BLOCK_BYTES);
    setUp.remote.faults = Array.from({ length: 19 }, (_, index) => ({
      cutAt: (index + 1) * 2 * BLOCK_BYTES,
    }));
    expect((await inTime(setUp.read(entry))).equals(bytes)).toBe(true);
  });

  test('twenty times without progress, as long as a call is retried', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = Array.from({ length: 20 }, () => ({ cutAt: 100 }));
    expect((await inTime(setUp.read(entry))).equals(bytes)).toBe(true);
  });

  test('not for ever: after 25 s without progress it fails', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    const cutAt = BLOCK_BYTES + 100;
    setUp.remote.faults = Array.from({ length: 100 }, () => ({ cutAt }));
    const start = setUp.clock.instant();
    const outcome = await inTime(attempt(entry));
    expect(outcome.failure).toMatchObject({ name: 'ApiError', failure: 'offline' });
    expect(outcome.bytes.equals(bytes.subarray(0, cutAt))).toBe(true);
    expect(setUp.asked().length).toBeLessThan(40);
    expect(elapsedMs(setUp.clock, start)).toBeGreaterThanOrEqual(25_000);
    expect(elapsedMs(setUp.clock, start)).toBeLessThan(30_000);
    expect(setUp.clock.sleeping).toBe(0);
  });

  test('waits before it tries again, and an abort ends the wait', async () => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = Array.from({ length: 9 }, () => ({ cutAt: 100 }));
    const leaver = new AbortController();
    const outcome = attempt(entry, undefined, leaver.signal);
    await setUp.clock.untilSleeping();
    leaver.abort(new Error('gone'));
    expect((await outcome).failure).toMatchObject({ message: 'gone' });
    expect(setUp.clock.sleeping).toBe(0);
  });

  test('but a revision that is gone meanwhile is gone', async () => {
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

  test('any cuts of any read leave the right bytes', async () => {
    const cuts = fc.array(fc.integer({ min: 0, max: SIZE }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(cuts, fc.boolean(), async (places, whole) => {
        const { bytes, entry } = setUp.file(SIZE);
        setUp.remote.faults = places.map((cutAt) => ({ cutAt }));
        const range = whole ? undefined : { start: 1, end: SIZE };
        const { contentHash: _none, ...bare } = { ...entry, rev: entry.rev };
        // Without a hash its blocks are another content each time: nothing comes from the cache.
        const read = await inTime(setUp.read(whole ? entry : bare, range));
        expect(read.equals(bytes.subarray(range?.start ?? 0))).toBe(true);
      }),
      { numRuns: effort(4) },
    );
  });
});

describe('damaged bytes never end as a clean read', () => {
  test.each([0, BLOCK_BYTES - 1, 2 * BLOCK_BYTES, 3 * BLOCK_BYTES - 1])(
    'at byte %d: it throws',
    async (flipAt) => {
      const { entry } = setUp.file(SIZE);
      setUp.remote.faults = [{ flipAt }];
      const { bytes, failure } = await attempt(entry);
      expect(failure).toMatchObject({ name: 'FileError', fault: 'broken' });
      expect(bytes.length).toBe(3 * BLOCK_BYTES);
    },
  );

  test.each([3 * BLOCK_BYTES, SIZE - 1])(
    'at byte %d, in the last block, they are fetched again',
    async (flipAt) => {
      const { bytes, entry } = setUp.file(SIZE);
      setUp.remote.faults = [{ flipAt }];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      expect(setUp.asked()).toEqual([undefined, { start: 3 * BLOCK_BYTES, end: SIZE }]);
    },
  );

  test('in the last block again and again: it throws', async () => {
    const { entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ flipAt: SIZE - 1 }, { flipAt: SIZE - 1 }];
    const { bytes, failure } = await attempt(entry);
    expect(failure).toMatchObject({ fault: 'broken' });
    expect(bytes.length).toBe(3 * BLOCK_BYTES);
  });

  test.each([0, 2000, BLOCK_BYTES - 1])(
    'at byte %d of a small file they are fetched again',
    async (flipAt) => {
      const { bytes, entry } = setUp.file(BLOCK_BYTES);
      setUp.remote.faults = [{ flipAt }];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
      expect(setUp.asked()).toEqual([undefined, undefined]);
    },
  );

  test('of a small file, again and again: it throws before the first byte', async () => {
    const { entry } = setUp.file(4096);
    setUp.remote.faults = [{ flipAt: 7 }, { flipAt: 7 }];
    const { bytes, failure } = await attempt(entry);
    expect(failure).toMatchObject({ fault: 'broken' });
    expect(bytes.length).toBe(0);
  });

  test('do not stay in the cache', async () => {
    for (const size of [4096, SIZE]) {
      const { bytes, entry } = setUp.file(size);
      setUp.remote.faults = [{ flipAt: 7 }, { flipAt: 7 }];
      expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
      setUp.remote.faults = [];
      expect((await setUp.read(entry)).equals(bytes)).toBe(true);
    }
  });

  test('that a range read left in the cache are found by the whole read', async () => {
    const { bytes, entry } = setUp.file(SIZE);
    setUp.remote.faults = [{ flipAt: 7 }];
    await setUp.read(entry, { start: 0, end: BLOCK_BYTES });
    expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
    expect((await setUp.read(entry)).equals(bytes)).toBe(true);
  });

  test('of a small file end no range read that meets its end', async () => {
    const { entry } = setUp.file(200_000);
    setUp.remote.faults = [{ flipAt: 7 }];
    const { failure } = await attempt(entry, { start: 1, end: 200_000 });
    expect(failure).toMatchObject({ fault: 'broken' });
  });

  test('nor do the bytes of another revision', async () => {
    const { entry } = setUp.file(SIZE);
    const download = setUp.remote.download.bind(setUp.remote);
    setUp.remote.download = async (...call) => ({
      ...(await download(...call)),
      file: { ...entry, rev: 'other' },
    });
    expect((await attempt(entry)).failure).toMatchObject({ fault: 'broken' });
  });

  test('nor more bytes than there are', async () => {
    const { entry } = setUp.file(SIZE);
    const longer = { ...entry, sizeBytes: SIZE - 5 };
    expect((await attempt(longer)).failure).toMatchObject({ fault: 'broken' });
    expect((await attempt(longer, { start: 9, end: SIZE - 5 })).failure).toBeUndefined();
  });
});

describe('a reader who goes away ends the download at once', () => {
  const cases: {
    readonly what: string;
    readonly range: ByteRange | undefined;
    readonly fault: DownloadFault;
  }[] = [
    { what: 'a whole read', range: undefined, fault: { placeholderAt: 100_000 } },
    { what: 'a whole read before its first byte', range: undefined, fault: { placeholderAt: 0 } },
    { what: 'a range', range: { start: 1, end: 9 * BLOCK_BYTES }, fault: { placeholderAt: 100_000 } },
    {
      what: 'a range in its second block',
      range: { start: 1, end: 9 * BLOCK_BYTES },
      fault: { placeholderAt: BLOCK_BYTES + 5 },
    },
  ];

  test.each(cases)('$what, by its signal', async ({ range, fault }) => {
    const { entry } = setUp.file(10 * BLOCK_BYTES);
    setUp.remote.faults = [fault];
    const leaver = new AbortController();
    const outcome = attempt(entry, range, leaver.signal);
    await eventually(() => expect(setUp.remote.openDownloads).toBe(1));
    await settle();
    leaver.abort(new Error('gone'));
    expect((await outcome).failure).toMatchObject({ message: 'gone' });
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
  });

  test.each(cases)('$what, by ending the iteration', async ({ range, fault }) => {
    const { entry } = setUp.file(10 * BLOCK_BYTES);
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

  test('also when nobody comes for the next piece', async () => {
    for (const range of [undefined, { start: 1, end: 9 * BLOCK_BYTES }]) {
      const { entry } = setUp.file(10 * BLOCK_BYTES);
      const leaver = new AbortController();
      const iterator = setUp.reader.read(entry, range, leaver.signal)[Symbol.asyncIterator]();
      await iterator.next();
      leaver.abort(new Error('gone'));
      await settle();
      expect(setUp.remote.openDownloads).toBe(0);
      await expect(iterator.next()).rejects.toThrow('gone');
    }
  });

  test('and a signal that is aborted already starts none', async () => {
    const { entry } = setUp.file(SIZE);
    for (const range of [undefined, { start: 1, end: 5 }])
      expect((await attempt(entry, range, AbortSignal.abort(new Error('gone')))).failure).toMatchObject({
        message: 'gone',
      });
    expect(setUp.asked()).toEqual([]);
  });

  test('but not while another one reads the same block', async () => {
    const { bytes, entry } = setUp.file(10 * BLOCK_BYTES);
    setUp.remote.faults = [{ placeholderAt: 100_000 }];
    const leaver = new AbortController();
    const left = attempt(entry, { start: 0, end: 9 * BLOCK_BYTES }, leaver.signal);
    const stayed = attempt(entry, { start: 50, end: BLOCK_BYTES });
    await settle();
    leaver.abort(new Error('gone'));
    expect((await left).failure).toMatchObject({ message: 'gone' });
    setUp.remote.release();
    expect((await stayed).bytes.equals(bytes.subarray(50, BLOCK_BYTES))).toBe(true);
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
    expect(setUp.asked()).toHaveLength(1);
    expect(setUp.remote.downloadedBytes).toBeLessThan(2 * BLOCK_BYTES);
  });

  test('and with it what was fetched ahead for it', async () => {
    const { entry } = setUp.file(10 * BLOCK_BYTES);
    await setUp.read(entry, { start: 0, end: 1000 });
    await settle();
    setUp.remote.faults = [{ placeholderAt: BLOCK_BYTES + 100 }];
    const leaver = new AbortController();
    const iterator = setUp.reader
      .read(entry, { start: 1000, end: 2000 }, leaver.signal)
      [Symbol.asyncIterator]();
    await iterator.next();
    await eventually(() => expect(setUp.remote.openDownloads).toBe(1));
    leaver.abort(new Error('gone'));
    await settle();
    expect(setUp.remote.openDownloads).toBe(0);
  });

  test('and leaves no listener on its signal', async () => {
    const { entry } = setUp.file(SIZE);
    const { signal } = new AbortController();
    const added = vi.spyOn(signal, 'addEventListener');
    const removed = vi.spyOn(signal, 'removeEventListener');
    await setUp.read(entry, undefined, signal);
    await setUp.read(entry, { start: 5, end: SIZE }, signal);
    setUp.remote.before = () => {
      throw new ApiError('offline', 'away');
    };
    await attempt(setUp.remote.put(FILM, pseudoRandomBytes(9, 9)), undefined, signal);
    for await (const _chunk of setUp.reader.read(entry, undefined, signal)) break;
    expect(removed.mock.calls.length).toBeGreaterThanOrEqual(added.mock.calls.length);
  });
});

test('a reader who has got its range leaves a whole block behind', async () => {
  const { entry } = setUp.file(10 * BLOCK_BYTES);
  await setUp.read(entry, { start: 10, end: 20 });
  await settle(200);
  expect(setUp.remote.downloadedBytes).toBe(BLOCK_BYTES);
  await setUp.read(entry, { start: BLOCK_BYTES - 10, end: BLOCK_BYTES });
  expect(setUp.asked()).toHaveLength(1);
});

test('what the service refuses reaches all who share the block, and the next reader asks again', async () => {
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

test('a slow reader holds back the download', async () => {
  const { entry } = setUp.file(30 * BLOCK_BYTES);
  for (const range of [undefined, { start: 1, end: entry.sizeBytes }]) {
    const before = setUp.remote.downloadedBytes;
    const iterator = setUp.reader.read(entry, range, new AbortController().signal)[Symbol.asyncIterator]();
    await iterator.next();
    await settle(500);
    expect(setUp.remote.downloadedBytes - before).toBeLessThanOrEqual(BLOCK_BYTES);
    await iterator.return?.();
  }
});

test('reads go on when the cache is deleted under them', async () => {
  const { bytes, entry } = setUp.file(SIZE);
  await setUp.read(entry, { start: 0, end: SIZE - 1 });
  const reader = await setUp.restart();
  await rm(setUp.directory, { recursive: true });
  const range = { start: 1, end: SIZE };
  const read = await collect(reader.read(entry, range, new AbortController().signal));
  expect(read.equals(bytes.subarray(1))).toBe(true);
});
