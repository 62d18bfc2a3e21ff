import { expect, onTestFinished, test } from 'vitest';
import { HeldFiles } from '../../../src/drive/placeholders.ts';
import type { Hold, Holds } from '../../../src/state/placeholders.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { turn } from '../../support/memory-drive.ts';
import { at } from '../../support/scripted-remote.ts';

/** Holds that another gateway works on too: each answer takes its time, as over a network. */
function sharedHolds() {
  const holds = new Map<string, Hold>();
  const asked = { questions: 0, isAway: false };
  const store: Holds = {
    async get(path) {
      asked.questions++;
      await turn();
      if (asked.isAway) throw new Error('the shared state is away');
      return holds.get(path);
    },
    in: async () => [],
    within: async () => [],
    put: async (hold) => void holds.set(hold.path, hold),
    forget: async (path) => void holds.delete(path),
  };
  return { holds, asked, store };
}

async function open(refuse = () => {}) {
  const { holds, asked, store } = sharedHolds();
  const clock = new ManualClock();
  const committed: string[] = [];
  const held: HeldFiles = new HeldFiles({
    store,
    clock,
    log: silentLog,
    async commit({ path }) {
      refuse();
      committed.push(path);
      await held.forget(path);
    },
  });
  await held.start();
  onTestFinished(() => held.close());
  await held.make(at('/new'), clock.now(), 5_000);
  return { held, holds, asked, clock, committed };
}

test('what another gateway has committed or removed is asked for once and forgotten', async () => {
  const { held, holds, asked, clock, committed } = await open();
  holds.clear();
  await clock.advance(5_000);
  await turn(50);
  expect(asked.questions).toBe(1);
  expect(held.count).toBe(0);
  expect(committed).toEqual([]);
});

test('while the shared state is away it is asked again after a while, not without end', async () => {
  const { held, asked, clock, committed } = await open();
  asked.isAway = true;
  await clock.advance(5_000);
  await turn(50);
  expect(asked.questions).toBe(1);
  asked.isAway = false;
  await clock.advance(5_000);
  await turn(50);
  expect(committed).toEqual(['/new']);
  expect(held.count).toBe(0);
});

test('what the service goes on refusing is tried ever less often, and at once when it changes', async () => {
  let tries = 0;
  const { held, clock } = await open(() => {
    tries++;
    throw new Error('the account may not');
  });
  for (let minute = 0; minute < 120; minute++) {
    await clock.advance(60_000);
    await turn(5);
  }
  expect(tries).toBeGreaterThan(10);
  expect(tries).toBeLessThan(30);
  const before = tries;
  await held.make(at('/new'), clock.now(), 5_000);
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000);
    await turn(5);
  }
  expect(tries).toBe(before + 2);
});
