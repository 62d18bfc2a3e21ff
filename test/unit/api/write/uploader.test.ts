import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CommitLane, type CommitRequest } from '../../../../src/api/write/commit-lane.ts';
import { UPLOAD_LIMITS, Uploader, type UploadLimits } from '../../../../src/api/write/uploader.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { BLOCK_BYTES, contentHashOf } from '../../../../src/util/content-hash.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { BytesRemote } from '../../../support/bytes-remote.ts';
import { effort } from '../../../support/effort.ts';

const PATH = pathOf(['folder', 'file.bin']);
const ANY = { mode: { if: 'any' } } as const;

async function* pieces(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

function setUp() {
  const remote = new BytesRemote();
  return { remote, uploader: uploaderOf(remote) };
}

const laneOf = (remote: BytesRemote) => new CommitLane(remote, systemClock);
const uploaderOf = (remote: BytesRemote, limits?: UploadLimits) =>
  new Uploader(remote, laneOf(remote), silentLog, limits);

describe('bodies of one block', () => {
  test.each([0, 1, 100_000, BLOCK_BYTES - 1, BLOCK_BYTES])(
    'a body of %d bytes is uploaded with one call',
    async (sizeBytes) => {
      const { remote, uploader } = setUp();
      const bytes = pseudoRandomBytes(sizeBytes, 1);
      const entry = await uploader.write(PATH, pieces(bytes, 65_536), ANY);
      expect(entry).toBe(remote.files.get(PATH));
      expect(bytes.equals(remote.contentAt(PATH) ?? Buffer.alloc(1))).toBe(true);
      expect(remote.calls.map(({ what }) => what)).toEqual(['upload']);
    },
  );

  test('a body in pieces of one byte is uploaded unchanged', async () => {
    const { remote, uploader } = setUp();
    const bytes = pseudoRandomBytes(70_001, 2);
    await uploader.write(PATH, pieces(bytes, 1), ANY);
    expect(bytes.equals(remote.contentAt(PATH) ?? Buffer.alloc(0))).toBe(true);
  });

  test('an upload passes on its mode, its modification time and the hash of its body', async () => {
    const { remote, uploader } = setUp();
    const seen: unknown[] = [];
    remote.upload = async (path, body, options) => {
      seen.push(options);
      return remote.put(path, body);
    };
    await uploader.write(PATH, pieces(Buffer.from('x'), 1), {
      mode: { if: 'rev', rev: 'r' },
      modifiedMs: 5000,
    });
    const contentHash = contentHashOf(Buffer.from('x'));
    expect(seen).toMatchObject([{ mode: { if: 'rev', rev: 'r' }, modifiedMs: 5000, contentHash }]);
  });
});

describe('longer bodies', () => {
  const part = UPLOAD_LIMITS.partBytes;
  test.each([BLOCK_BYTES + 1, BLOCK_BYTES + part, BLOCK_BYTES + part + 1, 2 * part, 5 * part + 12_345])(
    'a body of %d bytes is uploaded in a session, with or without an announced length',
    async (sizeBytes) => {
      const bytes = pseudoRandomBytes(sizeBytes, 3);
      for (const options of [ANY, { ...ANY, sizeBytes }]) {
        const { remote, uploader } = setUp();
        const entry = await uploader.write(PATH, pieces(bytes, 300_000), options);
        expect(entry).toBe(remote.files.get(PATH));
        expect(bytes.equals(remote.contentAt(PATH) ?? Buffer.alloc(0))).toBe(true);
        expect(remote.countOf('upload')).toBe(0);
        expect(remote.countOf('finishSession')).toBe(1);
      }
    },
  );

  test('a body with an announced length starts its session before its first byte', async () => {
    const { remote, uploader } = setUp();
    const bytes = pseudoRandomBytes(2 * BLOCK_BYTES, 4);
    let startsAtFirstByte = 0;
    async function* body() {
      startsAtFirstByte = remote.countOf('startSession');
      yield bytes;
    }
    await uploader.write(PATH, body(), { ...ANY, sizeBytes: bytes.length });
    expect(startsAtFirstByte).toBe(1);
  });

  test('a body is not read further ahead than the parts in flight', async () => {
    const { remote, uploader } = setUp();
    let readBytes = 0;
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    remote.before = ({ what }) => (what === 'appendSession' ? gate : undefined);
    const piece = pseudoRandomBytes(1024 * 1024, 5);
    async function* body() {
      for (let count = 0; count < 100; count++) {
        readBytes += piece.length;
        yield piece;
        // Yields to the sender, so that it takes what it can before the next piece.
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    const stored = uploader.write(PATH, body(), ANY);
    const limit = BLOCK_BYTES + UPLOAD_LIMITS.inFlightMax * part;
    for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(readBytes).toBeGreaterThan(part);
    expect(readBytes).toBeLessThanOrEqual(limit);
    open();
    expect((await stored).sizeBytes).toBe(100 * piece.length);
  });

  test('a session sends its parts in parallel, and the last one after all others', async () => {
    const { remote, uploader } = setUp();
    let underWay = 0;
    let mostUnderWay = 0;
    let underWayWithLast = -1;
    remote.before = async (call) => {
      if (call.what !== 'appendSession') return;
      underWay++;
      mostUnderWay = Math.max(mostUnderWay, underWay);
      if (call.part.last) underWayWithLast = underWay;
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    };
    await uploader.write(PATH, pieces(pseudoRandomBytes(9 * part, 6), part), ANY);
    expect(mostUnderWay).toBe(UPLOAD_LIMITS.inFlightMax);
    expect(underWayWithLast).toBe(1);
  });

  test('a session is committed through the given commit lane', async () => {
    const remote = new BytesRemote();
    const commits: CommitRequest[] = [];
    const lane = laneOf(remote);
    const commit = (request: CommitRequest, signal?: AbortSignal) => {
      commits.push(request);
      return lane.commit(request, signal);
    };
    const uploader = new Uploader(remote, { commit }, silentLog);
    await uploader.write(PATH, pieces(pseudoRandomBytes(BLOCK_BYTES + 5, 7), 65_536), {
      ...ANY,
      modifiedMs: 1000,
    });
    expect(commits).toMatchObject([
      {
        path: PATH,
        sizeBytes: BLOCK_BYTES + 5,
        contentHash: remote.files.get(PATH)?.contentHash,
        options: { ...ANY, modifiedMs: 1000 },
      },
    ]);
  });
});

test('concurrent uploads share the buffers and arrive unchanged', async () => {
  const remote = new BytesRemote();
  const uploader = uploaderOf(remote, { partBytes: BLOCK_BYTES, inFlightMax: 3, buffersMax: 2 });
  const all = Array.from({ length: 6 }, (_, seed) => pseudoRandomBytes(4 * BLOCK_BYTES + seed, seed));
  await Promise.all(
    all.map((bytes, index) => uploader.write(pathOf([`${index}`]), pieces(bytes, 100_000), ANY)),
  );
  all.forEach((bytes, index) => {
    expect(bytes.equals(remote.contentAt(pathOf([`${index}`])) ?? Buffer.alloc(0))).toBe(true);
  });
});

test('a body of any length in pieces of any size arrives unchanged', async () => {
  const size = fc.integer({ min: 0, max: 3 * BLOCK_BYTES });
  const cuts = fc.array(fc.integer({ min: 0, max: 2_000_000 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(size, cuts, fc.boolean(), async (sizeBytes, lengths, announced) => {
      const remote = new BytesRemote();
      const limits = { partBytes: BLOCK_BYTES, inFlightMax: 2, buffersMax: 3 };
      const uploader = uploaderOf(remote, limits);
      const bytes = pseudoRandomBytes(sizeBytes, sizeBytes);
      async function* body() {
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          // Single pieces may be empty, but not all of them.
          const length = lengths[turn % lengths.length] || (turn % 2) * 7777;
          yield bytes.subarray(at, at + length);
          at += length;
        }
      }
      await uploader.write(PATH, body(), announced ? { ...ANY, sizeBytes } : ANY);
      expect(bytes.equals(remote.contentAt(PATH) ?? Buffer.alloc(1))).toBe(true);
    }),
    { numRuns: effort(4) },
  );
});
