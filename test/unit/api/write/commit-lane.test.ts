import { beforeEach, describe, expect, test } from 'vitest';
import { ApiError } from '../../../../src/api/errors.ts';
import type { FileEntry } from '../../../../src/api/remote.ts';
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

const writeAll = (names: readonly string[]) => Promise.all(names.map((name) => write(name)));
const manyNames = (count: number) => Array.from({ length: count }, (_, index) => `file ${index}`);

/** The calls so far; of those for several files, with how many. */
const calls = () => remote.calls.map((call) => ('count' in call ? `${call.what} ${call.count}` : call.what));
const textAt = (name: string) => Buffer.from(remote.contentAt(named(name)) ?? []).toString();

const turns = async (count = 20) => {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** Holds the next call that `isMeant`. */
function hold(isMeant: (call: Call) => boolean) {
  let release = (_error?: Error) => {};
  let isHeld = false;
  const held = new Promise<void>((resolve, reject) => {
    release = (error) => (error ? reject(error) : resolve());
  });
  remote.before = (call) => {
    if (isHeld || !isMeant(call)) return;
    isHeld = true;
    return held;
  };
  return { release, isHeld: () => isHeld };
}

describe('one file', () => {
  test('that comes alone is one call, at once', async () => {
    expect(await write('a')).toBe(remote.files.get(named('a')));
    await write('b');
    await write('c');
    expect(calls()).toEqual(['upload', 'upload', 'upload']);
    expect(clock.sleeping).toBe(0);
  });

  test('and one more beside it are two calls: they have nothing to gain from each other', async () => {
    await writeAll(['a', 'b']);
    expect(calls()).toEqual(['upload', 'upload']);
  });

  test('in a session that is sent already is one commit', async () => {
    const bytes = Buffer.from('long');
    const [session] = await remote.stageContents([{ bytes, contentHash: contentHashOf(bytes) }]);
    if (!session) throw new Error('no session');
    const about = { path: named('long'), sizeBytes: 4, contentHash: contentHashOf(bytes) };
    await lane.commit({ ...about, content: session, options: { mode: { if: 'any' } } });
    expect(calls()).toEqual(['stageContents 1', 'finishSession']);
    expect(textAt('long')).toBe('long');
  });
});

describe('several at once', () => {
  test('gather while the first is committed, and go together', async () => {
    await writeAll(manyNames(8));
    expect(calls()).toEqual(['upload', 'stageContents 7', 'finishSessions 7']);
    for (const name of manyNames(8)) expect(textAt(name)).toBe(name);
  });

  test('two hundred are a handful of calls', async () => {
    await clock.during(writeAll(manyNames(200)));
    expect(calls().length).toBeLessThanOrEqual(10);
    for (const name of manyNames(200)) expect(textAt(name)).toBe(name);
  });

  test('that come back one by one are waited for, and are one group again', async () => {
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

  test('again and again stay one group', async () => {
    const client = async (name: string) => {
      for (let round = 0; round < 10; round += 1) await write(`${name} ${round}`);
    };
    await clock.during(Promise.all(manyNames(8).map(client)));
    expect(remote.files.size).toBe(80);
    expect(calls().length).toBeLessThanOrEqual(25);
  });

  test('of which fewer come back wait no longer than a moment', async () => {
    await writeAll(manyNames(8));
    remote.calls.length = 0;
    const again = write('a');
    await turns();
    expect(calls()).toEqual([]);
    await clock.advance(25);
    await again;
    expect(calls()).toEqual(['upload']);
  });

  test('never commit twice at a time', async () => {
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

describe('where the service takes several side by side', () => {
  beforeEach(() => {
    remote.sideBySide = 4;
  });

  test('short files are an upload each, as many at once as it takes', async () => {
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

  test('and then no longer, they go together', async () => {
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

  test('the order of the writes to one path is kept', async () => {
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

describe('the outcome of each', () => {
  const conflict = new ApiError('conflict-file', 'path/conflict/file');

  test('is its own', async () => {
    remote.outcomeOf = ({ path }) => (path === named('file 3') ? conflict : undefined);
    const outcomes = await Promise.allSettled(manyNames(8).map((name) => write(name)));
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(
      manyNames(8).map((name) => name !== 'file 3'),
    );
    expect(outcomes[3]).toMatchObject({ reason: conflict });
  });

  test('is told at once, and others may go on, while one is still tried again', async () => {
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

  test('is an upload of its own for what the service lost on the way', async () => {
    remote.outcomeOf = ({ path }) =>
      path === named('file 3') ? new ApiError('session-gone', 'lookup_failed/not_found') : undefined;
    await writeAll(manyNames(8));
    expect(calls()).toEqual(['upload', 'stageContents 7', 'finishSessions 7', 'upload']);
    expect(textAt('file 3')).toBe('file 3');
  });

  test('is an upload of its own for all when the service takes no batch of contents', async () => {
    remote.stageContents = () => Promise.reject(new ApiError('bad-request', 'Unknown API function'));
    await writeAll(manyNames(5));
    expect(calls()).toEqual(['upload', 'upload', 'upload', 'upload', 'upload']);
  });

  test('is the same for all who waited long while the service was away', async () => {
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

  test('is its own refusal, when the one before was refused', async () => {
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
  test('are committed in their order, never two at a time', async () => {
    const texts = Array.from({ length: 6 }, (_, index) => `version ${index}`);
    const versions: (string | undefined)[] = [];
    const writes = texts.map(async (text) => {
      await write('same', text);
      versions.push(textAt('same'));
    });
    await clock.during(Promise.all([...writes, writeAll(manyNames(8))]));
    expect(versions).toEqual(texts);
  });

  test('that differ only in letter case are to one path', async () => {
    const gate = hold(({ what }) => what === 'upload');
    const first = write('Same', 'first');
    const second = write('sAME', 'second');
    await turns();
    expect(calls()).toEqual(['upload']);
    gate.release();
    await Promise.all([first, second]);
    expect(calls()).toEqual(['upload', 'upload']);
  });

  test('go on after one that failed', async () => {
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

describe('a client that leaves', () => {
  const reason = new Error('gone');

  test('before its turn leaves nothing behind, and the others are none the worse', async () => {
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
    'during %s costs the others nothing',
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
      // What was being committed may be there, and only that.
      expect(remote.files.has(named('left'))).toBe(stage === 'finishSessions');
    },
  );

  test('during the commit is overtaken by no later write to its path', async () => {
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

  test('has gone already: nothing is done', async () => {
    await expect(write('a', 'a', AbortSignal.abort(reason))).rejects.toBe(reason);
    await turns();
    expect(calls()).toEqual([]);
  });
});
