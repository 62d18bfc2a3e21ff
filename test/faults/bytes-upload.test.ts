import { describe, expect, test, vi } from 'vitest';
import { ApiError } from '../../src/api/errors.ts';
import { CommitLane } from '../../src/api/write/commit-lane.ts';
import { UPLOAD_LIMITS, Uploader } from '../../src/api/write/uploader.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { pathOf } from '../../src/util/path.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { BytesRemote, never } from '../support/bytes-remote.ts';
import { eventually } from '../support/eventually.ts';

const PATH = pathOf(['file.bin']);
const ANY = { mode: { if: 'any' } } as const;
const OLD = Buffer.from('the old content');
const PIECE = pseudoRandomBytes(1024 * 1024, 1);
/** More than all parts that may be under way. */
const LONG_PIECES = 60;

function setUp(log: Log = silentLog) {
  const remote = new BytesRemote();
  remote.put(PATH, OLD);
  return { remote, uploader: new Uploader(remote, laneOf(remote), log) };
}

const laneOf = (remote: BytesRemote) => new CommitLane(remote, systemClock);

/** A body that says when it was closed. */
function bodyOf(pieces: AsyncIterable<Uint8Array>) {
  const state = { closed: false };
  async function* body() {
    try {
      yield* pieces;
    } finally {
      state.closed = true;
    }
  }
  return { state, body: body() };
}

async function* repeated(
  count: number,
  end: () => Promise<void> | void = () => {},
): AsyncGenerator<Uint8Array> {
  for (let index = 0; index < count; index++) yield PIECE;
  await end();
}

function expectOldContent(remote: BytesRemote): void {
  expect(remote.contentAt(PATH)).toEqual(OLD);
}

describe('a body that is not as announced is not committed', () => {
  const cases = [
    { what: 'short within a block', pieces: 1, sizeBytes: PIECE.length + 1 },
    { what: 'short after blocks were sent', pieces: LONG_PIECES, sizeBytes: PIECE.length * LONG_PIECES + 1 },
    { what: 'long within a block', pieces: 1, sizeBytes: PIECE.length - 1 },
    { what: 'long after blocks were sent', pieces: LONG_PIECES, sizeBytes: PIECE.length * LONG_PIECES - 1 },
    { what: 'not empty', pieces: 1, sizeBytes: 0 },
    { what: 'empty', pieces: 0, sizeBytes: 5 },
  ];
  test.each(cases)('$what', async ({ pieces, sizeBytes }) => {
    const { remote, uploader } = setUp();
    const { state, body } = bodyOf(repeated(pieces));
    const outcome = uploader.write(PATH, body, { ...ANY, sizeBytes });
    await expect(outcome).rejects.toMatchObject({ name: 'ApiError', failure: 'incomplete' });
    expectOldContent(remote);
    expect(remote.countOf('finishSession') + remote.countOf('upload')).toBe(0);
    expect(state.closed).toBe(true);
  });
});

describe('a body that throws is not committed', () => {
  test.each([0, 1, 4, 5, LONG_PIECES])('after %d MiB', async (pieces) => {
    const { remote, uploader } = setUp();
    const body = repeated(pieces, () => Promise.reject(new Error('the sender went away')));
    await expect(uploader.write(PATH, body, ANY)).rejects.toThrow('the sender went away');
    expectOldContent(remote);
    expect(remote.countOf('finishSession') + remote.countOf('upload')).toBe(0);
  });

  test('and its parts under way are aborted', async () => {
    const { remote, uploader } = setUp();
    const signals: AbortSignal[] = [];
    remote.before = ({ what }, signal) => {
      if (what !== 'appendSession' || !signal) return;
      signals.push(signal);
      return never(signal);
    };
    const body = repeated(15, async () => {
      await eventually(() => expect(signals.length).toBeGreaterThan(0));
      throw new Error('the sender went away');
    });
    await expect(uploader.write(PATH, body, ANY)).rejects.toThrow('the sender went away');
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });
});

describe('an abort ends the write and commits nothing', () => {
  test('before it begins', async () => {
    const { remote, uploader } = setUp();
    const signal = AbortSignal.abort(new Error('gone'));
    await expect(uploader.write(PATH, repeated(1), ANY, signal)).rejects.toThrow('gone');
    expect(remote.calls).toEqual([]);
  });

  test.each([0, 1, 10])('while the sender stalls after %d MiB', async (pieces) => {
    const { remote, uploader } = setUp();
    const leaver = new AbortController();
    const body = repeated(pieces, () => {
      // Not before the uploader waits for the piece that never comes.
      setImmediate(() => leaver.abort(new Error('gone')));
      return new Promise(() => {});
    });
    await expect(uploader.write(PATH, body, ANY, leaver.signal)).rejects.toThrow('gone');
    expectOldContent(remote);
  });

  test.each(['upload', 'startSession', 'appendSession', 'finishSession'] as const)('in %s', async (stage) => {
    const { remote, uploader } = setUp();
    const leaver = new AbortController();
    remote.before = ({ what }, signal) => {
      if (what !== stage) return;
      setImmediate(() => leaver.abort(new Error('gone')));
      return never(signal);
    };
    const { state, body } = bodyOf(repeated(stage === 'upload' ? 1 : LONG_PIECES));
    await expect(uploader.write(PATH, body, ANY, leaver.signal)).rejects.toThrow('gone');
    expectOldContent(remote);
    await eventually(() => expect(state.closed).toBe(true));
  });

  test('between the last part and the commit', async () => {
    const { remote, uploader } = setUp();
    const leaver = new AbortController();
    const append = remote.appendSession.bind(remote);
    remote.appendSession = async (session, part, signal) => {
      await append(session, part, signal);
      if (part.last) leaver.abort(new Error('gone'));
    };
    await expect(uploader.write(PATH, repeated(6), ANY, leaver.signal)).rejects.toThrow('gone');
    expect(remote.countOf('finishSession')).toBe(0);
    expectOldContent(remote);
  });

  test('and leaves no listener on the signal', async () => {
    const { uploader } = setUp();
    const leaver = new AbortController();
    const added = vi.spyOn(leaver.signal, 'addEventListener');
    const removed = vi.spyOn(leaver.signal, 'removeEventListener');
    await uploader.write(PATH, repeated(6), ANY, leaver.signal);
    expect(added).toHaveBeenCalledTimes(1);
    expect(removed).toHaveBeenCalledTimes(1);
  });
});

describe('what the service refuses is thrown as it is, and nothing is committed', () => {
  const stages = ['upload', 'startSession', 'appendSession', 'finishSession'] as const;
  test.each(stages)('%s', async (stage) => {
    const { remote, uploader } = setUp();
    const refusal = new ApiError('insufficient-space', 'full');
    remote.before = ({ what }) => {
      if (what === stage) throw refusal;
    };
    const { state, body } = bodyOf(repeated(stage === 'upload' ? 1 : LONG_PIECES));
    await expect(uploader.write(PATH, body, ANY)).rejects.toBe(refusal);
    expectOldContent(remote);
    expect(state.closed).toBe(true);
  });

  test('while the sender stalls: the write does not wait for it', async () => {
    const { remote, uploader } = setUp();
    const refusal = new ApiError('session-gone', 'lookup_failed/not_found');
    remote.before = ({ what }) => {
      if (what === 'appendSession') throw refusal;
    };
    const body = repeated(20, () => new Promise(() => {}));
    await expect(uploader.write(PATH, body, ANY)).rejects.toBe(refusal);
    expectOldContent(remote);
  });

  test('a session that is gone in the middle', async () => {
    const { remote, uploader } = setUp();
    let parts = 0;
    remote.before = ({ what }) => {
      if (what === 'appendSession' && ++parts === 4) throw new ApiError('session-gone', 'not_found');
    };
    const outcome = uploader.write(PATH, repeated(LONG_PIECES), ANY);
    await expect(outcome).rejects.toMatchObject({ failure: 'session-gone' });
    expectOldContent(remote);
  });

  test('and the buffers are there for the next write', async () => {
    const remote = new BytesRemote();
    const limits = { ...UPLOAD_LIMITS, buffersMax: 1 };
    const uploader = new Uploader(remote, laneOf(remote), silentLog, limits);
    let broken = true;
    remote.before = ({ what }) => {
      if (broken && what === 'appendSession') throw new ApiError('unavailable', '503');
    };
    for (let round = 0; round < 3; round++)
      await expect(uploader.write(PATH, repeated(30), ANY)).rejects.toThrow('503');
    broken = false;
    const both = [PATH, pathOf(['other'])].map((path) => uploader.write(path, repeated(30), ANY));
    expect(await Promise.all(both)).toMatchObject([
      { sizeBytes: 30 * PIECE.length },
      { sizeBytes: 30 * PIECE.length },
    ]);
  });
});

test('a commit of other bytes than davgate sent is logged as an error', async () => {
  const errors: unknown[] = [];
  const { remote, uploader } = setUp({ ...silentLog, error: (...event) => errors.push(event) });
  const refusal = new ApiError('hash-mismatch', 'other content');
  remote.finishSession = () => Promise.reject(refusal);
  await expect(uploader.write(PATH, repeated(6), ANY)).rejects.toBe(refusal);
  expect(errors).toEqual([
    ['the service stored other bytes than davgate sent', { problem: 'other content' }],
  ]);
});
