import { beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import type { FileEntry } from '../../../../src/api/remote.ts';
import { TurnTaken } from '../../../../src/api/turns.ts';
import { CommitLane } from '../../../../src/api/write/commit-lane.ts';
import { contentHashOf } from '../../../../src/util/content-hash.ts';
import { type Path, pathOf } from '../../../../src/util/path.ts';
import { BytesRemote } from '../../../support/bytes-remote.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

type Call = BytesRemote['calls'][number];

let remote: BytesRemote;
let clock: ManualClock;
let lane: CommitLane;
beforeEach(() => {
  remote = new BytesRemote();
  clock = new ManualClock();
  lane = new CommitLane(remote, clock);
});

const named = (name: string): Path => pathOf([name]);

/** Writes `text` to the file `name`. */
function write(name: string, text = name, signal?: AbortSignal): Promise<FileEntry> {
  const content = Buffer.from(text);
  const options = { mode: { if: 'any' } } as const;
  const about = {
    path: named(name),
    options,
    sizeBytes: content.length,
    contentHash: contentHashOf(content),
  };
  return lane.commit({ ...about, content }, signal);
}

/** Writes the file `name`, whose bytes, the name, are in a session already. */
async function writeInSession(name: string): Promise<FileEntry> {
  const bytes = Buffer.from(name);
  const contentHash = contentHashOf(bytes);
  const [session] = await remote.stageContents([{ bytes, contentHash }]);
  if (!session) throw new Error('no session');
  const about = { path: named(name), sizeBytes: bytes.length, contentHash };
  return lane.commit({ ...about, content: session, options: { mode: { if: 'any' } } });
}

const writeAll = (names: readonly string[]) => Promise.all(names.map((name) => write(name)));
const manyNames = (count: number) => Array.from({ length: count }, (_, index) => `file ${index}`);

/** The calls so far, with the number of files where a call is for several. */
const calls = () => remote.calls.map((call) => ('count' in call ? `${call.what} ${call.count}` : call.what));
const textAt = (name: string) => Buffer.from(remote.contentAt(named(name)) ?? []).toString();

const turns = async (count = 20) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Holds the next call for which `isMeant` is true. */
function hold(isMeant: (call: Call) => boolean) {
  let release = (_error?: Error) => {};
  let isHeld = false;
  const released = new Promise<void>((resolve, reject) => {
    release = (error) => (error ? reject(error) : resolve());
  });
  remote.before = (call) => {
    if (isHeld || !isMeant(call)) return;
    isHeld = true;
    return released;
  };
  return { release, isHeld: () => isHeld };
}

describe('single files', () => {
  test('a single file is committed with one upload call at once', async () => {
    expect(await write('a')).toBe(remote.files.get(named('a')));
    await write('b');
    await write('c');
    expect(calls()).toEqual(['upload', 'upload', 'upload']);
    expect(clock.sleeping).toBe(0);
  });

  test('two concurrent files are committed with one upload call each', async () => {
    await writeAll(['a', 'b']);
    expect(calls()).toEqual(['upload', 'upload']);
  });

  test('a file that is already in a session is committed with one call', async () => {
    await writeInSession('long');
    expect(calls()).toEqual(['stageContents 1', 'finishSession']);
    expect(textAt('long')).toBe('long');
  });
});

describe('beside other gateways', () => {
  test('a file that comes alone while another gateway commits is committed in a batch, which that gateway may take along', async () => {
    remote.before = async ({ what }) => {
      if (what !== 'upload') return;
      remote.isShared = true;
      throw new TurnTaken();
    };
    expect(await clock.during(write('a'))).toBe(remote.files.get(named('a')));
    expect(calls()).toEqual(['upload', 'stageContents 1', 'finishSessions 1']);
  });

  test('a file in a session that would wait for the commit of another gateway is committed in a batch instead', async () => {
    remote.before = async ({ what }) => {
      if (what !== 'finishSession') return;
      remote.isShared = true;
      throw new TurnTaken();
    };
    expect(await clock.during(writeInSession('long'))).toBe(remote.files.get(named('long')));
    expect(calls()).toEqual(['stageContents 1', 'finishSession', 'finishSessions 1']);
  });
});

describe('concurrent files', () => {
  test('files that arrive during a commit are committed together in the next batch', async () => {
    await writeAll(manyNames(8));
    expect(calls()).toEqual(['upload', 'stageContents 7', 'finishSessions 7']);
    for (const name of manyNames(8)) expect(textAt(name)).toBe(name);
  });

  test('200 concurrent files are committed with at most ten calls', async () => {
    await clock.during(writeAll(manyNames(200)));
    expect(calls().length).toBeLessThanOrEqual(10);
    for (const name of manyNames(200)) expect(textAt(name)).toBe(name);
  });

  test('the lane waits for writers that return one by one, and commits their files in one batch', async () => {
    await writeAll(manyNames(8));
    remote.calls.length = 0;
    const again: Promise<FileEntry>[] = [];
    for (const name of manyNames(7)) {
      expect(calls()).toEqual([]);
      again.push(write(name, 'again'));
      await turns(1);
    }
    await Promise.all(again);
    expect(calls()).toEqual(['stageContents 7', 'finishSessions 7']);
  });

  test('writers that return again and again are committed in batches', async () => {
    const client = async (name: string) => {
      for (let round = 0; round < 10; round += 1) await write(`${name} ${round}`);
    };
    await clock.during(Promise.all(manyNames(8).map(client)));
    expect(remote.files.size).toBe(80);
    expect(calls().length).toBeLessThanOrEqual(25);
  });

  test('a writer that returns alone waits 25 ms for the others', async () => {
    await writeAll(manyNames(8));
    remote.calls.length = 0;
    const again = write('a');
    await turns();
    expect(calls()).toEqual([]);
    await clock.advance(25);
    await again;
    expect(calls()).toEqual(['upload']);
  });

  test('the lane never runs two commits at a time', async () => {
    let committing = 0;
    let most = 0;
    remote.before = async ({ what }) => {
      if (!/^(upload|finish)/.test(what)) return;
      committing += 1;
      most = Math.max(most, committing);
      await turns(3);
      committing -= 1;
    };
    const large = async (name: string) => {
      const content = Buffer.alloc(300_000, name);
      const about = { path: named(name), sizeBytes: content.length, contentHash: contentHashOf(content) };
      return lane.commit({ ...about, content, options: { mode: { if: 'any' } } });
    };
    await clock.during(Promise.all([writeAll(manyNames(20)), large('x'), large('y'), large('z')]));
    expect(most).toBe(1);
    expect(remote.files.size).toBe(23);
  });
});

describe('a service that accepts parallel commits', () => {
  beforeEach(() => {
    remote.sideBySide = 4;
  });

  test('short files are uploaded in parallel, as many as the service accepts', async () => {
    let most = 0;
    let underWay = 0;
    remote.before = async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await turns(3);
      underWay -= 1;
    };
    await writeAll(manyNames(20));
    expect(most).toBe(4);
    expect(calls()).toEqual(Array(20).fill('upload'));
    for (const name of manyNames(20)) expect(textAt(name)).toBe(name);
  });

  test('files are committed in batches once the service no longer accepts parallel commits', async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    remote.before = ({ what }) => (what === 'upload' ? gate : undefined);
    const writing = writeAll(manyNames(10));
    await turns();
    remote.sideBySide = 1;
    release();
    await writing;
    expect(calls().slice(4)).toEqual(['stageContents 6', 'finishSessions 6']);
  });

  test('writes to one path stay in order when commits run in parallel', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('same', 'first');
    const second = write('same', 'second');
    await write('other');
    expect(remote.files.has(named('same'))).toBe(false);
    gate.release();
    await Promise.all([first, second]);
    expect(textAt('same')).toBe('second');
  });
});

describe('the outcome of each file', () => {
  const conflict = new ApiError('conflict-file', 'path/conflict/file');

  test('a file that is refused in a batch fails alone', async () => {
    remote.outcomeOf = ({ path }) => (path === named('file 3') ? conflict : undefined);
    const outcomes = await Promise.allSettled(manyNames(8).map((name) => write(name)));
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(
      manyNames(8).map((name) => name !== 'file 3'),
    );
    expect(outcomes[3]).toMatchObject({ reason: conflict });
  });

  test('files of a batch are acknowledged at once while another one is retried, and further commits proceed', async () => {
    let finish = () => {};
    const finishSessions = remote.finishSessions.bind(remote);
    remote.finishSessions = async (commits, signal, onOutcome) => {
      const [first, ...others] = commits;
      const outcomes = await finishSessions(others, signal, (index, outcome) =>
        onOutcome?.(index + 1, outcome),
      );
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      const last = first ? await finishSessions([first], signal, onOutcome) : [];
      return [...last, ...outcomes];
    };
    const [, late, ...rest] = manyNames(8).map((name) => write(name));
    await Promise.all(rest);
    const more = write('more');
    await clock.advance(25);
    await more;
    expect(remote.files.has(named('file 1'))).toBe(false);
    finish();
    expect(await late).toMatchObject({ name: 'file 1' });
  });

  test('a file whose session the service has lost is uploaded alone', async () => {
    remote.outcomeOf = ({ path }) =>
      path === named('file 3') ? new ApiError('session-gone', 'lookup_failed/not_found') : undefined;
    await writeAll(manyNames(8));
    expect(calls()).toEqual(['upload', 'stageContents 7', 'finishSessions 7', 'upload']);
    expect(textAt('file 3')).toBe('file 3');
  });

  test('all files are uploaded one by one when the service has no batch call', async () => {
    remote.stageContents = () => Promise.reject(new ApiError('bad-request', 'Unknown API function'));
    await writeAll(manyNames(5));
    expect(calls()).toEqual(['upload', 'upload', 'upload', 'upload', 'upload']);
  });

  test('files that have waited long for an unreachable service all fail with its error, and a later one is tried', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('first');
    await turns();
    const others = manyNames(6).map((name) => write(name));
    await clock.advance(5_000);
    const late = write('late');
    const away = new ApiError('offline', 'no answer');
    gate.release(away);
    const outcomes = await Promise.allSettled([first, ...others]);
    expect(outcomes.map((outcome) => 'reason' in outcome && outcome.reason)).toEqual(Array(7).fill(away));
    expect(await late).toMatchObject({ name: 'late' });
    expect(calls()).toEqual(['upload', 'upload']);
  });

  test('a refused commit does not fail the next one', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('first');
    const second = write('second');
    await turns();
    gate.release(conflict);
    await expect(first).rejects.toBe(conflict);
    expect(await second).toMatchObject({ name: 'second' });
  });
});

describe('writes to one path', () => {
  test('writes to one path are committed in order', async () => {
    const texts = Array.from({ length: 6 }, (_, index) => `version ${index}`);
    const versions: (string | undefined)[] = [];
    const writes = texts.map(async (text) => {
      await write('same', text);
      versions.push(textAt('same'));
    });
    await clock.during(Promise.all([...writes, writeAll(manyNames(8))]));
    expect(versions).toEqual(texts);
  });

  test('writes to paths that differ only in letter case are committed one after the other', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('Same', 'first');
    const second = write('sAME', 'second');
    await turns();
    expect(calls()).toEqual(['upload']);
    gate.release();
    await Promise.all([first, second]);
    expect(calls()).toEqual(['upload', 'upload']);
  });

  test('a failed write does not fail the next one to its path', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('same', 'first');
    const second = write('same', 'second');
    await turns();
    gate.release(new ApiError('insufficient-space', 'path/insufficient_space'));
    await expect(first).rejects.toMatchObject({ failure: 'insufficient-space' });
    await second;
    expect(textAt('same')).toBe('second');
  });
});

describe('aborted commits', () => {
  const reason = new Error('gone');

  test('a write aborted before its turn is not committed, and the others are', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const leaving = new AbortController();
    const first = write('first');
    const left = write('left', 'left', leaving.signal);
    const others = manyNames(5).map((name) => write(name));
    await turns();
    leaving.abort(reason);
    await expect(left).rejects.toBe(reason);
    gate.release();
    await Promise.all([first, ...others]);
    expect(remote.files.has(named('left'))).toBe(false);
    expect(calls()).toEqual(['upload', 'stageContents 5', 'finishSessions 5']);
  });

  test.each(['stageContents', 'finishSessions'] as const)(
    'a write aborted during %s does not affect the others',
    async (stage) => {
      const gate = hold(({ what }) => what === stage);
      const leaving = new AbortController();
      const others = writeAll(manyNames(5));
      const left = write('left', 'left', leaving.signal);
      while (!gate.isHeld()) await turns(1);
      leaving.abort(reason);
      await expect(left).rejects.toBe(reason);
      gate.release();
      await others;
      // A write aborted during the commit may have been committed.
      expect(remote.files.has(named('left'))).toBe(stage === 'finishSessions');
    },
  );

  test('a write aborted during its commit does not overtake a later write to its path', async () => {
    const gate = hold(({ what }) => what === 'finishSessions');
    const leaving = new AbortController();
    const others = writeAll(manyNames(5));
    const left = write('left', 'old', leaving.signal);
    while (!gate.isHeld()) await turns(1);
    leaving.abort(reason);
    await expect(left).rejects.toBe(reason);
    const again = write('left', 'new');
    await turns();
    gate.release();
    await clock.during(Promise.all([others, again]));
    expect(textAt('left')).toBe('new');
  });

  test('a write whose signal is already aborted makes no call', async () => {
    await expect(write('a', 'a', AbortSignal.abort(reason))).rejects.toBe(reason);
    await turns();
    expect(calls()).toEqual([]);
  });
});
