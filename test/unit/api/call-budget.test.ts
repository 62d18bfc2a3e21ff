import { beforeEach, expect, test } from 'vitest';
import { CallBudget } from '../../../src/api/call-budget.ts';
import { SharedAccess } from '../../../src/api/shared-access.ts';
import type { BudgetGrant, SharedBudget } from '../../../src/api/shared-budget.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A shared budget whose answers a test sets. */
class FakeBudget implements SharedBudget {
  asked: number[] = [];
  pauses: number[] = [];
  told: string[] = [];
  answer: () => Promise<BudgetGrant> = async () => grant();

  take(calls: number): Promise<BudgetGrant> {
    this.asked.push(calls);
    return this.answer();
  }

  async pause(ms: number): Promise<void> {
    this.pauses.push(ms);
  }

  async resume(): Promise<void> {
    this.pauses.push(0);
  }

  async chooseTrier(): Promise<boolean> {
    return false;
  }

  async learned(outcome: string): Promise<void> {
    this.told.push(outcome);
  }
}

const grant = (some: Partial<BudgetGrant> = {}): BudgetGrant => ({
  ...{ calls: 10, pausedMs: 0, parallelCommits: 'unknown' },
  ...some,
});

let clock: ManualClock;
let shared: FakeBudget;
let lines: string[];
let budget: CallBudget;

beforeEach(() => {
  clock = new ManualClock();
  shared = new FakeBudget();
  lines = [];
  const note = (event: string) => void lines.push(event);
  const access = new SharedAccess({ clock, log: { info: note, warn: note, error: note } });
  budget = new CallBudget({ shared, access, clock });
});

const takeMany = (count: number) => Promise.all(Array.from({ length: count }, () => budget.take()));
const never = () => new Promise<never>(() => {});
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('ten calls that start at once cost one question of the shared budget', async () => {
  expect(await takeMany(10)).toEqual(Array.from({ length: 10 }, () => 0));
  expect(shared.asked).toEqual([10]);
});

test('the eleventh call costs another question of the shared budget', async () => {
  await takeMany(11);
  expect(shared.asked).toEqual([10, 10]);
});

test('calls taken more than 250 ms ago are not used without another question', async () => {
  await budget.take();
  await clock.advance(250);
  await budget.take();
  expect(shared.asked).toEqual([10, 10]);
});

test('a pause that another gateway has announced is told to each call that asks', async () => {
  shared.answer = async () => grant({ calls: 0, pausedMs: 1500 });
  expect(await takeMany(3)).toEqual([1500, 1500, 1500]);
});

test('a pause and its early end are announced to the shared budget', async () => {
  budget.pause(700);
  budget.resume();
  expect(shared.pauses).toEqual([700, 0]);
});

test('a call waits at most 1 s for a shared budget that does not answer, and the next ones do not wait', async () => {
  shared.answer = never;
  const first = budget.take();
  await clock.untilSleeping();
  await clock.advance(1000);
  expect(await first).toBe(0);
  await takeMany(50);
  expect(shared.asked).toHaveLength(1);
  expect(lines).toEqual(['the shared budget of calls is away; this gateway limits its calls alone']);
});

test('no call waits for a shared budget that was away, and after 5 s one question finds out whether it is back', async () => {
  shared.answer = () => Promise.reject(new Error('gone'));
  await budget.take();
  await clock.advance(5000);
  shared.answer = never;
  expect(await takeMany(30)).toEqual(Array.from({ length: 30 }, () => 0));
  expect(shared.asked).toHaveLength(2);
  await clock.advance(1000);
  await clock.advance(5000);
  shared.answer = async () => grant({ calls: 1 });
  await budget.take();
  await turn();
  expect(lines.at(-1)).toBe('the shared budget of calls is back');
  shared.answer = async () => grant({ calls: 0, pausedMs: 20 });
  await clock.advance(250);
  expect(await budget.take()).toBe(20);
});

test('what another gateway has learned about parallel commits is known from the next calls on', async () => {
  expect(budget.parallelCommits).toBe('unknown');
  shared.answer = async () => grant({ parallelCommits: 'refused' });
  await budget.take();
  expect(budget.parallelCommits).toBe('refused');
});

test('what a gateway has learned about parallel commits is told to the others', async () => {
  budget.learned('refused');
  expect([budget.parallelCommits, shared.told]).toEqual(['refused', ['refused']]);
});

test('while the shared budget is away, a gateway finds out about parallel commits by itself and forgets nothing', async () => {
  expect(await budget.chooseTrier()).toBe(false);
  budget.learned('accepted');
  shared.answer = () => Promise.reject(new Error('gone'));
  await budget.take();
  expect([budget.parallelCommits, await budget.chooseTrier()]).toEqual(['accepted', true]);
});
