import { isDeepStrictEqual } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { Placeholders } from '../../../src/drive/placeholders.ts';
import { StateUnwritable } from '../../../src/state/errors.ts';
import type { Placeholder, PlaceholderStore } from '../../../src/state/placeholders.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Gate } from '../../support/gate.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { turn } from '../../support/memory-drive.ts';
import { at } from '../../support/scripted-remote.ts';

/** A placeholder store shared with another davgate. Each answer takes a turn of the event loop, as over a network. */
function sharedPlaceholders() {
  const stored = new Map<string, Placeholder>();
  const asked = { questions: 0, isAway: false, isFull: false, events: 0 };
  const store: PlaceholderStore = {
    async get(path) {
      asked.questions++;
      await turn();
      if (asked.isAway) throw new Error('the shared state is away');
      return stored.get(path);
    },
    in: async () => [],
    within: async () => [...stored.values()],
    put: async (placeholder) => void stored.set(placeholder.path, placeholder),
    lastEvent: () => asked.events,
    async exchange(last, next) {
      await turn();
      if (asked.isFull) throw new StateUnwritable('redis', 'its memory is full');
      if (!isDeepStrictEqual(stored.get(last.path), last)) return false;
      stored.set(last.path, next);
      return true;
    },
    forget: async ({ path, id }) => stored.get(path)?.id === id && stored.delete(path),
  };
  return { stored, asked, store };
}

async function open(commit: () => void | Promise<void> = () => {}) {
  const { stored, asked, store } = sharedPlaceholders();
  const clock = new ManualClock();
  const committed: string[] = [];
  const alive = new Set(['one', 'other']);
  const caughtUpTo: number[] = [];
  const gateway = (own: string) => {
    const placeholders = new Placeholders({
      store,
      gateways: { own, inherits: (owner) => owner !== undefined && !alive.has(owner) },
      clock,
      log: silentLog,
      caughtUpTo: async (event) => void caughtUpTo.push(event),
      async commit({ path }) {
        await commit();
        committed.push(path);
        return true;
      },
    });
    placeholders.start();
    onTestFinished(() => placeholders.close());
    return placeholders;
  };
  const placeholders = gateway('one');
  await placeholders.make(at('/new'), clock.now(), 5_000);
  return { placeholders, other: gateway('other'), alive, stored, asked, clock, committed, caughtUpTo };
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

/** Returns a commit that does not end before `end`, and resolves `begun` when it begins. */
function heldCommit() {
  const gate = new Gate();
  return { commit: () => gate.pass(), begun: gate.reached, end: () => gate.open() };
}

test('a placeholder that another davgate takes over to change it is not committed by its first owner', async () => {
  const { placeholders, other, clock, committed } = await open();
  await other.withCommitsPaused([at('/new')], async () => {
    await clock.advance(60_000);
    await turn(50);
    expect(committed).toEqual([]);
    expect(placeholders.count).toBe(0);
  });
  await turn(50);
  expect(committed).toEqual(['/new']);
  expect(other.count).toBe(0);
});

test('a davgate that changes a placeholder waits while its owner commits it, and finds it gone', async () => {
  const { commit, begun, end } = heldCommit();
  const { placeholders, other, clock, committed } = await open(commit);
  const committing = placeholders.commit(at('/new'));
  await begun;
  const seen: unknown[] = [];
  const changed = other.withCommitsPaused([at('/new')], async () => seen.push(await other.get(at('/new'))));
  await clock.advance(5_000);
  await turn(50);
  expect(seen).toEqual([]);
  end();
  await committing;
  await clock.advance(100);
  await changed;
  expect(seen).toEqual([undefined]);
  expect(committed).toEqual(['/new']);
});

test('a placeholder whose owner was killed while committing it is taken over when the owner is known to be gone', async () => {
  const { commit, begun, end } = heldCommit();
  const { placeholders, other, alive, clock } = await open(commit);
  void placeholders.commit(at('/new'));
  await begun;
  const changed = other.withCommitsPaused([at('/new')], async () => (await other.get(at('/new')))?.owner);
  await turn(50);
  alive.delete('one');
  await clock.advance(100);
  expect(await changed).toBe('other');
  end();
});

test('a placeholder whose commit has failed can be taken over at once', async () => {
  const { placeholders, other } = await open(() => {
    throw new Error('the service is away');
  });
  await expect(placeholders.commit(at('/new'))).rejects.toThrow('away');
  expect(await other.withCommitsPaused([at('/new')], async () => (await other.get(at('/new')))?.owner)).toBe(
    'other',
  );
});

test('of two davgates that take a placeholder over at the same time, one commits it', async () => {
  const { placeholders, other, clock, committed } = await open();
  const done = Promise.all([placeholders.commit(at('/new')), other.commit(at('/new'))]);
  await turn(20);
  await clock.advance(100);
  await done;
  expect(committed).toEqual(['/new']);
});

test('a lookup that misses a placeholder waits until what was committed before it is known', async () => {
  const { other, asked, caughtUpTo } = await open();
  asked.events = 7;
  await other.get(at('/none'));
  asked.events = 8;
  await other.in(at('/none'));
  asked.events = 9;
  await other.within(at('/none'));
  expect(caughtUpTo).toEqual([7, 8, 9]);
});

test('a placeholder that a davgate has stored without an answer of the shared state is committed when its time comes', async () => {
  const { placeholders, stored, clock, committed } = await open();
  const [known] = [...stored.values()];
  if (known) stored.set('/unknown', { ...known, path: at('/unknown'), untilMs: clock.now() + 20_000 });
  await placeholders.takeOver();
  await clock.advance(19_000);
  await turn(50);
  expect(committed).toEqual(['/new']);
  await clock.advance(1_000);
  await turn(50);
  expect(committed).toEqual(['/new', '/unknown']);
});

test('another davgate does not commit a placeholder that is being moved or removed, and waits for the end of that', async () => {
  const { placeholders, other, clock, committed } = await open();
  const { commit: removal, begun, end } = heldCommit();
  const removed = placeholders.withCommitsPaused([at('/new')], removal, { isShort: true });
  await begun;
  const committing = other.commit(at('/new'));
  await turn(20);
  await clock.advance(5_000);
  expect(committed).toEqual([]);
  await placeholders.forget({ path: at('/new'), id: (await placeholders.get(at('/new')))?.id ?? '' });
  end();
  await removed;
  await clock.advance(100);
  await committing;
  expect(committed).toEqual([]);
});

test('a placeholder that was to be moved or removed, and was not, can be taken over at once', async () => {
  const { placeholders, other, stored } = await open();
  const failing = () => Promise.reject(new Error('refused'));
  await expect(placeholders.withCommitsPaused([at('/new')], failing, { isShort: true })).rejects.toThrow(
    'refused',
  );
  await other.withCommitsPaused([at('/new')], async () => expect(stored.get('/new')?.owner).toBe('other'));
});

test('a request that waits ten seconds for another davgate fails with busy', async () => {
  const { commit, begun, end } = heldCommit();
  const { placeholders, other, clock } = await open(commit);
  const committing = placeholders.commit(at('/new'));
  await begun;
  const waiting = other.commit(at('/new')).catch((error: unknown) => error);
  for (let count = 0; count < 101; count++) {
    await turn();
    await clock.advance(100);
  }
  expect(await waiting).toMatchObject({ fault: 'busy' });
  end();
  await committing;
});

test('while the shared state has no room, placeholders are committed and removed nevertheless', async () => {
  const { placeholders, other, asked, committed } = await open();
  asked.isFull = true;
  await placeholders.commit(at('/new'));
  expect(committed).toEqual(['/new']);
  await placeholders.make(at('/second'), 0, 5_000);
  const { id = '' } = (await other.get(at('/second'))) ?? {};
  await other.withCommitsPaused([at('/second')], () => other.forget({ path: at('/second'), id }), {
    isShort: true,
  });
  expect(await other.get(at('/second'))).toBeUndefined();
});

test('while the shared state has no room, what a killed davgate has left is committed', async () => {
  const { other, alive, asked, committed } = await open();
  asked.isFull = true;
  alive.delete('one');
  await other.takeOver();
  await turn(50);
  expect(committed).toEqual(['/new']);
});

test('a time is not stored for a placeholder with which another davgate is busy', async () => {
  const { placeholders, other, stored } = await open();
  const { commit: removal, begun, end } = heldCommit();
  const removed = placeholders.withCommitsPaused([at('/new')], removal, { isShort: true });
  await begun;
  const found = await other.get(at('/new'));
  expect(found && (await other.renew(found, 1_000, 5_000))).toBeUndefined();
  expect(stored.get('/new')?.owner).toBe('one');
  end();
  await removed;
});

test('a time that is set while another davgate takes the placeholder over is not stored over that', async () => {
  const { placeholders, other, stored, asked, clock } = await open();
  const found = await placeholders.get(at('/new'));
  if (!found) throw new Error('no placeholder');
  await other.withCommitsPaused([at('/new')], async () => {
    expect(await placeholders.renew(found, 1_000, 5_000)).toBeUndefined();
    const own = await other.get(at('/new'));
    asked.isFull = true;
    await expect(own && other.renew(own, 1_000, 60_000)).rejects.toThrow('full');
    asked.isFull = false;
    expect(stored.get('/new')).toMatchObject({ owner: 'other', modifiedMs: clock.now() });
    expect(own && (await other.renew(own, 1_000, 60_000))).toMatchObject({ modifiedMs: 1_000 });
  });
});

test('forgetting a placeholder leaves the time of one that has replaced it', async () => {
  const { placeholders, clock, committed } = await open();
  const first = await placeholders.get(at('/new'));
  await placeholders.make(at('/new'), 0, 5_000);
  if (first) await placeholders.forget(first);
  await clock.advance(5_000);
  await turn(50);
  expect(committed).toEqual(['/new']);
});

test('a mark stays while the second of two removals runs, and is gone after it', async () => {
  const { placeholders, stored } = await open();
  const [first, second] = [heldCommit(), heldCommit()];
  const runs = [first, second].map(({ commit }) =>
    placeholders.withCommitsPaused([at('/new')], commit, { isShort: true }),
  );
  await Promise.all([first.begun, second.begun]);
  first.end();
  await runs[0];
  expect(stored.get('/new')?.isBusy).toBe(true);
  second.end();
  await runs[1];
  expect(stored.get('/new')?.isBusy).toBeUndefined();
});

test('what a killed davgate has taken over is committed, although it had another time here before', async () => {
  const { placeholders, other, alive, committed } = await open();
  await other.withCommitsPaused([at('/new')], async () => void alive.delete('other'));
  await placeholders.takeOver();
  await turn(50);
  expect(committed).toEqual(['/new']);
});
