import { beforeEach, describe, expect, test } from 'vitest';
import { CallBudget } from '../../../src/api/call-budget.ts';
import { CallQueue, type Lane } from '../../../src/api/queue.ts';
import { SharedAccess } from '../../../src/api/shared-access.ts';
import type { SharedBudget } from '../../../src/api/shared-budget.ts';
import { instantAt } from '../../../src/util/clock.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

let clock: ManualClock;
let queue: CallQueue;
let jobs: Job[];

interface Job {
  readonly name: string;
  readonly finish: () => void;
}

beforeEach(() => {
  clock = new ManualClock();
  jobs = [];
  queue = new CallQueue({ clock, patienceMs: 25_000, signal: new AbortController().signal });
});

/** Queues a call that runs until `finish`. It is in `jobs` from the moment it starts. */
function ask(lane: Lane, name: string = lane, signal = new AbortController().signal): Promise<void> {
  const job = () => new Promise<void>((resolve) => jobs.push({ name, finish: resolve }));
  return queue.run(lane, job, signal);
}

const names = () => jobs.map(({ name }) => name);
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function finish(name: string): Promise<void> {
  const job = jobs.splice(names().indexOf(name), 1)[0];
  job?.finish();
  await turn();
}

function askMany(lane: Lane, count: number): void {
  for (let index = 0; index < count; index += 1) void ask(lane, `${lane} ${index}`).catch(() => {});
}

describe('lanes', () => {
  test('commits run one at a time, in the order asked', async () => {
    askMany('commit', 3);
    await turn();
    expect(names()).toEqual(['commit 0']);
    await finish('commit 0');
    expect(names()).toEqual(['commit 1']);
    await finish('commit 1');
    expect(names()).toEqual(['commit 2']);
  });

  test('parts of uploads run in parallel up to a limit, and do not wait for commits', async () => {
    askMany('commit', 1);
    askMany('session', 20);
    await turn();
    const running = names().filter((name) => name.startsWith('session')).length;
    expect(running).toBeGreaterThan(1);
    expect(running).toBeLessThan(20);
  });

  test('a listing does not wait behind commits, uploads, reads or prefetches', async () => {
    for (const lane of ['commit', 'session', 'read', 'prefetch'] as const) askMany(lane, 50);
    await turn();
    void ask('metadata', 'listing');
    await turn();
    expect(names()).toContain('listing');
  });

  test('a listing does not wait behind other lanes even after rate limits have cut all concurrency', async () => {
    for (let times = 0; times < 10; times += 1) {
      queue.limited('read');
      queue.limited('metadata');
      await clock.advance(1000);
    }
    for (const lane of ['commit', 'session', 'read', 'prefetch'] as const) askMany(lane, 50);
    void ask('metadata', 'listing');
    await turn();
    expect(names()).toContain('listing');
  });

  test('after a pause the waiting calls start by the priority of their lanes', async () => {
    queue.pause(1000);
    for (const lane of ['prefetch', 'session', 'commit', 'read', 'metadata'] as const) void ask(lane);
    await turn();
    expect(names()).toEqual([]);
    await clock.advance(1000);
    expect(names()).toEqual(['metadata', 'read', 'commit', 'session', 'prefetch']);
  });
});

describe('pauses', () => {
  test('no call of any lane starts during a pause', async () => {
    queue.pause(2000);
    for (const lane of ['metadata', 'read', 'commit', 'session', 'prefetch'] as const) void ask(lane);
    await clock.advance(1999);
    expect(names()).toEqual([]);
    await clock.advance(1);
    expect(names()).toHaveLength(5);
  });

  test('the longest of several pauses applies', async () => {
    queue.pause(3000);
    queue.pause(1000);
    void ask('read');
    await clock.advance(2999);
    expect(names()).toEqual([]);
    await clock.advance(1);
    expect(names()).toEqual(['read']);
  });

  test('a pause that is too long to wait for fails waiting and new calls with rate-limited until it ends', async () => {
    queue.pause(1000);
    const waiting = ask('metadata');
    queue.pause(300_000);
    await expect(waiting).rejects.toMatchObject({
      failure: 'rate-limited',
      details: { retryAfterMs: 300_000 },
    });
    await expect(ask('read')).rejects.toMatchObject({ failure: 'rate-limited' });
    await clock.advance(300_000);
    void ask('read');
    await turn();
    expect(names()).toEqual(['read']);
  });
});

describe('aborted calls', () => {
  test('an aborted call leaves the queue and never starts', async () => {
    askMany('commit', 1);
    const abort = new AbortController();
    const dropped = ask('commit', 'dropped', abort.signal);
    void ask('commit', 'next');
    await turn();
    const reason = new Error('the client has gone');
    abort.abort(reason);
    await expect(dropped).rejects.toBe(reason);
    await finish('commit 0');
    expect(names()).toEqual(['next']);
    expect(queue.waiting).toBe(0);
  });

  test('a call whose signal is already aborted fails and never starts', async () => {
    await expect(ask('metadata', 'late', AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(names()).toEqual([]);
  });
});

describe('concurrency limit', () => {
  const running = async () => {
    askMany('metadata', 40);
    await turn();
    return jobs.length;
  };

  test('the concurrency of a lane halves once for a burst of rate limits', async () => {
    for (let call = 0; call < 8; call += 1) queue.limited('metadata');
    expect(await running()).toBe(8);
  });

  test('the concurrency of a lane never falls below two', async () => {
    for (let times = 0; times < 10; times += 1) {
      queue.limited('metadata');
      await clock.advance(1000);
    }
    expect(await running()).toBe(2);
  });

  test('the concurrency of a lane grows by one after as many successes as it has', async () => {
    queue.limited('metadata');
    for (let call = 0; call < 9; call += 1) queue.succeeded('metadata');
    expect(await running()).toBe(9);
  });

  test('the concurrency of a lane has an upper bound', async () => {
    for (let call = 0; call < 1000; call += 1) queue.succeeded('metadata');
    expect(await running()).toBe(16);
  });
});

test('a shared pause that ends while the call begins to wait for its end does not hold the call back', async () => {
  let nowMs = 0;
  // Each look at it takes a ms, as it may when the process is held up.
  const ticking = { ...clock, now: () => nowMs, instant: () => instantAt(nowMs++), sleep: async () => {} };
  const pauses = [1];
  const shared: SharedBudget = {
    take: async (calls) => {
      const pausedMs = pauses.pop() ?? 0;
      return { calls: pausedMs > 0 ? 0 : calls, pausedMs, parallelCommits: 'unknown' };
    },
    pause: async () => {},
    resume: async () => {},
    chooseTrier: async () => false,
    learned: async () => {},
  };
  const access = new SharedAccess({ clock: ticking, log: silentLog });
  const budget = new CallBudget({ shared, access, clock: ticking });
  queue = new CallQueue({ clock: ticking, patienceMs: 25_000, signal: new AbortController().signal, budget });
  askMany('commit', 1);
  for (let count = 0; count < 10; count++) await turn();
  expect(names()).toEqual(['commit 0']);
});

test('a pause that another gateway has announced holds calls back until it ends, at this gateway too', async () => {
  let pausedMs = 1000;
  const shared: SharedBudget = {
    take: async (calls) => ({ calls: pausedMs > 0 ? 0 : calls, pausedMs, parallelCommits: 'unknown' }),
    pause: async () => {},
    resume: async () => {},
    chooseTrier: async () => false,
    learned: async () => {},
  };
  const budget = new CallBudget({ shared, access: new SharedAccess({ clock, log: silentLog }), clock });
  queue = new CallQueue({ clock, patienceMs: 25_000, signal: new AbortController().signal, budget });
  askMany('metadata', 3);
  await turn();
  expect([names(), queue.paused, queue.waiting]).toEqual([[], true, 3]);
  pausedMs = 0;
  await clock.advance(1000);
  await turn();
  expect([names().length, queue.paused, queue.waiting]).toEqual([3, false, 0]);
});
