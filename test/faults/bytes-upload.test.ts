import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { ApiError } from '../../src/api/errors.ts';
import { CommitLane } from '../../src/api/write/commit-lane.ts';
import { Uploader, type UploadLimits } from '../../src/api/write/uploader.ts';
import { systemClock } from '../../src/util/clock.ts';
import { BLOCK_BYTES } from '../../src/util/content-hash.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { pathOf } from '../../src/util/path.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { BytesRemote, never } from '../support/bytes-remote.ts';
import { eventually } from '../support/eventually.ts';

const PATH = pathOf(['file.bin']);
const ANY = { mode: { if: 'any' } } as const;
const OLD = Buffer.from('the old content');
const PIECE = pseudoRandomBytes(1024 * 1024, 1);
/** Limits below those of davgate, so that short bodies fill all parts. */
const LIMITS: UploadLimits = { partBytes: BLOCK_BYTES, inFlightMax: 2, buffersMax: 4 };
/** Pieces of a body that is longer than its parts in flight and the one being filled, which have 12 MiB. */
const LONG_PIECES = 14;

function setUp({ log = silentLog, buffersMax = LIMITS.buffersMax }: { log?: Log; buffersMax?: number } = {}) {
  const remote = new BytesRemote();
  remote.put(PATH, OLD);
  const lane = new CommitLane(remote, systemClock);
  return { remote, uploader: new Uploader(remote, lane, log, { ...LIMITS, buffersMax }) };
}

/** The calls of a write: `upload` for a short body, the others for a long one. */
const STAGES = ['upload', 'startSession', 'appendSession', 'finishSession'] as const;

/** Returns a body of `pieces`, and a state that shows whether the body was closed. */
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

describe('a body of another size than announced', () => {
  const cases = [
    { what: 'too short within a block', pieces: 1, sizeBytes: PIECE.length + 1 },
    {
      what: 'too short after blocks were sent',
      pieces: LONG_PIECES,
      sizeBytes: PIECE.length * LONG_PIECES + 1,
    },
    { what: 'too long within a block', pieces: 1, sizeBytes: PIECE.length - 1 },
    {
      what: 'too long after blocks were sent',
      pieces: LONG_PIECES,
      sizeBytes: PIECE.length * LONG_PIECES - 1,
    },
    { what: 'announced as empty and is not', pieces: 1, sizeBytes: 0 },
    { what: 'announced with 5 bytes and is empty', pieces: 0, sizeBytes: 5 },
  ];
  test.each(cases)(
    'an upload whose body is $what fails as incomplete, closes the body and commits nothing',
    async ({ pieces, sizeBytes }) => {
      const { remote, uploader } = setUp();
      const { state, body } = bodyOf(repeated(pieces));
      const outcome = uploader.write(PATH, body, { ...ANY, sizeBytes });
      await expect(outcome).rejects.toMatchObject({ name: 'ApiError', failure: 'incomplete' });
      expectOldContent(remote);
      expect(remote.countOf('finishSession') + remote.countOf('upload')).toBe(0);
      expect(state.closed).toBe(true);
    },
  );
});

describe('a body that throws', () => {
  test.each([0, 1, 4, 5, LONG_PIECES])(
    'an upload whose body throws after %d MiB commits nothing',
    async (pieces) => {
      const { remote, uploader } = setUp();
      const body = repeated(pieces, () => Promise.reject(new Error('the sender went away')));
      await expect(uploader.write(PATH, body, ANY)).rejects.toThrow('the sender went away');
      expectOldContent(remote);
      expect(remote.countOf('finishSession') + remote.countOf('upload')).toBe(0);
    },
  );

  test('an upload whose body throws aborts its parts in flight', async () => {
    const { remote, uploader } = setUp();
    const signals: AbortSignal[] = [];
    remote.before = ({ what }, signal) => {
      if (what !== 'appendSession' || !signal) return;
      signals.push(signal);
      return never(signal);
    };
    const body = repeated(6, async () => {
      await eventually(() => expect(signals.length).toBeGreaterThan(0));
      throw new Error('the sender went away');
    });
    await expect(uploader.write(PATH, body, ANY)).rejects.toThrow('the sender went away');
    expect(signals.every(({ aborted }) => aborted)).toBe(true);
  });
});

describe('an upload that is aborted', () => {
  test('an upload that is aborted before it begins makes no call', async () => {
    const { remote, uploader } = setUp();
    const signal = AbortSignal.abort(new Error('gone'));
    await expect(uploader.write(PATH, repeated(1), ANY, signal)).rejects.toThrow('gone');
    expect(remote.calls).toEqual([]);
  });

  test.each([0, 1, 10])(
    'an upload that is aborted while its sender stalls after %d MiB ends and commits nothing',
    async (pieces) => {
      const { remote, uploader } = setUp();
      const controller = new AbortController();
      const body = repeated(pieces, () => {
        // After this turn the uploader waits for a piece that never comes.
        setImmediate(() => controller.abort(new Error('gone')));
        return new Promise(() => {});
      });
      await expect(uploader.write(PATH, body, ANY, controller.signal)).rejects.toThrow('gone');
      expectOldContent(remote);
    },
  );

  test.each(STAGES)(
    'an upload that is aborted in %s ends, closes the body and commits nothing',
    async (stage) => {
      const { remote, uploader } = setUp();
      const controller = new AbortController();
      remote.before = ({ what }, signal) => {
        if (what !== stage) return;
        setImmediate(() => controller.abort(new Error('gone')));
        return never(signal);
      };
      const { state, body } = bodyOf(repeated(stage === 'upload' ? 1 : LONG_PIECES));
      await expect(uploader.write(PATH, body, ANY, controller.signal)).rejects.toThrow('gone');
      expectOldContent(remote);
      await eventually(() => expect(state.closed).toBe(true));
    },
  );

  test('an upload that is aborted between its last part and the commit commits nothing', async () => {
    const { remote, uploader } = setUp();
    const controller = new AbortController();
    const append = remote.appendSession.bind(remote);
    remote.appendSession = async (session, part, signal) => {
      await append(session, part, signal);
      if (part.last) controller.abort(new Error('gone'));
    };
    await expect(uploader.write(PATH, repeated(6), ANY, controller.signal)).rejects.toThrow('gone');
    expect(remote.countOf('finishSession')).toBe(0);
    expectOldContent(remote);
  });

  test('an upload leaves no listener on its signal', async () => {
    const { uploader } = setUp();
    const controller = new AbortController();
    const added = vi.spyOn(controller.signal, 'addEventListener');
    await uploader.write(PATH, repeated(6), ANY, controller.signal);
    expect(added).toHaveBeenCalledTimes(1);
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
  });
});

describe('an upload that is refused', () => {
  test.each(STAGES)(
    'an upload whose %s is refused fails with that refusal, closes the body and commits nothing',
    async (stage) => {
      const { remote, uploader } = setUp();
      const refusal = new ApiError('insufficient-space', 'full');
      remote.before = ({ what }) => {
        if (what === stage) throw refusal;
      };
      const { state, body } = bodyOf(repeated(stage === 'upload' ? 1 : LONG_PIECES));
      await expect(uploader.write(PATH, body, ANY)).rejects.toBe(refusal);
      expectOldContent(remote);
      expect(state.closed).toBe(true);
    },
  );

  test('an upload whose part is refused ends while its sender stalls', async () => {
    const { remote, uploader } = setUp();
    const refusal = new ApiError('session-gone', 'lookup_failed/not_found');
    remote.before = ({ what }) => {
      if (what === 'appendSession') throw refusal;
    };
    const body = repeated(6, () => new Promise(() => {}));
    await expect(uploader.write(PATH, body, ANY)).rejects.toBe(refusal);
    expectOldContent(remote);
  });

  test('an upload whose session is gone in the middle of the body fails and commits nothing', async () => {
    const { remote, uploader } = setUp();
    let parts = 0;
    remote.before = ({ what }) => {
      if (what === 'appendSession' && ++parts === 3) throw new ApiError('session-gone', 'not_found');
    };
    const outcome = uploader.write(PATH, repeated(LONG_PIECES), ANY);
    await expect(outcome).rejects.toMatchObject({ failure: 'session-gone' });
    expectOldContent(remote);
  });

  test('uploads that were refused free their buffers for later uploads', async () => {
    const { remote, uploader } = setUp({ buffersMax: 1 });
    let broken = true;
    remote.before = ({ what }) => {
      if (broken && what === 'appendSession') throw new ApiError('unavailable', '503');
    };
    for (let round = 0; round < 3; round++)
      await expect(uploader.write(PATH, repeated(LONG_PIECES), ANY)).rejects.toThrow('503');
    broken = false;
    const both = [PATH, pathOf(['other'])].map((path) => uploader.write(path, repeated(LONG_PIECES), ANY));
    const sizeBytes = LONG_PIECES * PIECE.length;
    expect(await Promise.all(both)).toMatchObject([{ sizeBytes }, { sizeBytes }]);
  });
});

test('a commit of other bytes than davgate sent is logged as an error', async () => {
  const errors: unknown[] = [];
  const log = { ...silentLog, error: (...event: unknown[]) => errors.push(event) };
  const { remote, uploader } = setUp({ log });
  const refusal = new ApiError('hash-mismatch', 'other content');
  remote.finishSession = () => Promise.reject(refusal);
  await expect(uploader.write(PATH, repeated(6), ANY)).rejects.toBe(refusal);
  expect(errors).toEqual([
    ['the service stored other bytes than davgate sent', { problem: 'other content' }],
  ]);
});
