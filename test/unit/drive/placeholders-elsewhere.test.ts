import { expect, onTestFinished, test } from 'vitest';
import { Placeholders } from '../../../src/drive/placeholders.ts';
import type { Placeholder, PlaceholderStore } from '../../../src/state/placeholders.ts';
import { silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { turn } from '../../support/memory-drive.ts';
import { at } from '../../support/scripted-remote.ts';

/** A placeholder store shared with another davgate. Each answer takes a turn of the event loop, as over a network. */
function sharedPlaceholders() {
  const stored = new Map<string, Placeholder>();
  const asked = { questions: 0, isAway: false };
  const store: PlaceholderStore = {
    async get(path) {
      asked.questions++;
      await turn();
      if (asked.isAway) throw new Error('the shared state is away');
      return stored.get(path);
    },
    in: async () => [],
    within: async () => [],
    put: async (placeholder) => void stored.set(placeholder.path, placeholder),
    forget: async (path) => void stored.delete(path),
  };
  return { stored, asked, store };
}

async function open(refuse = () => {}) {
  const { stored, asked, store } = sharedPlaceholders();
  const clock = new ManualClock();
  const committed: string[] = [];
  const placeholders = new Placeholders({
    store,
    gateways: { own: undefined, inherits: () => true },
    clock,
    log: silentLog,
    async commit({ path }) {
      refuse();
      committed.push(path);
      return true;
    },
  });
  placeholders.start();
  onTestFinished(() => placeholders.close());
  await placeholders.make(at('/new'), clock.now(), 5_000);
  return { placeholders, stored, asked, clock, committed };
}

test('a placeholder that another davgate has committed or removed is looked up once and dropped', async () => {
  const { placeholders, stored, asked, clock, committed } = await open();
  stored.clear();
  await clock.advance(5_000);
  await turn(50);
  expect(asked.questions).toBe(1);
  expect(placeholders.count).toBe(0);
  expect(committed).toEqual([]);
});

test('a placeholder is looked up once per retry while the shared state is away, and committed when it is back', async () => {
  const { placeholders, asked, clock, committed } = await open();
  asked.isAway = true;
  await clock.advance(5_000);
  await turn(50);
  expect(asked.questions).toBe(1);
  asked.isAway = false;
  await clock.advance(5_000);
  await turn(50);
  expect(committed).toEqual(['/new']);
  expect(placeholders.count).toBe(0);
});

test('a placeholder that the service keeps refusing is retried at growing intervals, and sooner after it is written again', async () => {
  let tries = 0;
  const { placeholders, clock } = await open(() => {
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
  await placeholders.make(at('/new'), clock.now(), 5_000);
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000);
    await turn(5);
  }
  expect(tries).toBe(before + 2);
});
