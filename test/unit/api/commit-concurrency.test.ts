import { beforeEach, expect, test } from 'vitest';
import { CallBudget } from '../../../src/api/call-budget.ts';
import { CommitConcurrency } from '../../../src/api/commit-concurrency.ts';
import { SharedAccess } from '../../../src/api/shared-access.ts';
import type { ParallelCommits, SharedBudget } from '../../../src/api/shared-budget.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** How long what was learned counts, in ms. */
const HOUR_MS = 3_600_000;

let clock: ManualClock;
/** What the gateways of the account know. */
let known: ParallelCommits;
let isTrierChosen: boolean;

beforeEach(() => {
  clock = new ManualClock();
  known = 'unknown';
  isTrierChosen = false;
});

/** A gateway that shares the account with the others. */
function newGateway() {
  const shared: SharedBudget = {
    take: async (calls) => ({ calls, pausedMs: 0, parallelCommits: known }),
    pause: async () => {},
    resume: async () => {},
    async chooseTrier() {
      if (isTrierChosen) return false;
      isTrierChosen = true;
      return true;
    },
    async learned(outcome) {
      known = outcome;
    },
  };
  const budget = new CallBudget({ shared, access: new SharedAccess({ clock, log: silentLog }), clock });
  const concurrency = new CommitConcurrency(clock, budget);
  /** Makes a commit alone. */
  const commit = () => concurrency.during({ overlapped: false }, () => turn());
  /** Learns what the others know. */
  const ask = async () => {
    await clock.advance(1000);
    await budget.take();
  };
  return { concurrency, commit, ask };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('a gateway that shares its account with no other one tries two commits at once', () => {
  expect(new CommitConcurrency(clock, undefined).max).toBe(2);
});

test('of several gateways, only one tries two commits at once', async () => {
  const [one, other] = [newGateway(), newGateway()];
  await one.commit();
  await other.commit();
  expect([one.concurrency.max, other.concurrency.max]).toEqual([2, 1]);
});

test('after the refusal of a commit at one gateway, the others commit one by one without a refusal of their own', async () => {
  const [one, other] = [newGateway(), newGateway()];
  await one.commit();
  one.concurrency.refused();
  await other.ask();
  expect([one.concurrency.max, other.concurrency.max]).toEqual([1, 1]);
  await other.commit();
  expect(other.concurrency.max).toBe(1);
});

test('after the success of parallel commits at one gateway, the others commit in parallel too', async () => {
  const [one, other] = [newGateway(), newGateway()];
  await one.commit();
  one.concurrency.succeeded({ overlapped: true });
  await other.ask();
  expect([one.concurrency.max, other.concurrency.max]).toEqual([3, 2]);
});

test('a commit that ran alone teaches nothing', async () => {
  const one = newGateway();
  await one.commit();
  one.concurrency.succeeded({ overlapped: false });
  expect([one.concurrency.max, known]).toEqual([2, 'unknown']);
});

test('a gateway that was refused does not try again within an hour, although the others have forgotten it', async () => {
  const one = newGateway();
  one.concurrency.refused();
  known = 'unknown';
  await clock.advance(HOUR_MS - 2000);
  await one.ask();
  await one.commit();
  expect([one.concurrency.max, isTrierChosen]).toEqual([1, false]);
  await one.ask();
  await one.commit();
  expect([one.concurrency.max, isTrierChosen]).toEqual([2, true]);
});
