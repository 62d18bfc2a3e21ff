import { setTimeout as pause } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { effort, IS_LONG, testSeed } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { type PostgresPair, startPostgresPair } from '../../support/postgres-pair.ts';
import { change } from '../model/steps.ts';
import { entriesAt, LoggingFollower, linesAt } from './change-log.ts';
import { Nodes, newBlockFolder } from './nodes.ts';
import { expectLogged, Writer } from './writer.ts';

/** How often each kind of fault happens. */
const ROUNDS = effort(1);

const WRITERS = 4;

/** Acknowledged changes between two faults. */
const CHANGES = 30;

let postgres: PostgresPair;
beforeAll(async () => {
  postgres = await startPostgresPair();
});
afterAll(() => postgres.close());

type Fault = 'node' | 'stop' | 'fail over' | 'node and stop' | 'node and fail over' | 'long stop';

const FAULTS: readonly Fault[] = [
  ...(['node', 'stop', 'fail over', 'node and stop', 'node and fail over'] as const),
  // Longer than calls wait.
  ...(IS_LONG ? (['long stop'] as const) : []),
];

test(`${ROUNDS * FAULTS.length} kills of nodes, stops of PostgreSQL and promotions of its standby lose no acknowledged change, leave none half done, and three nodes tell their followers of each once`, async () => {
  const seed = testSeed();
  process.stdout.write(`faults of nodes: seed ${seed}\n`);
  const nodes = await Nodes.started(3, {
    metadata: await postgres.newDatabase(),
    blocks: { folder: await newBlockFolder() },
    // Few rows, so that moves and copies of a folder take several transactions.
    steps: { stagedRowsMax: 3, removedRowsMax: 3 },
  });
  const writers = Array.from({ length: WRITERS }, (_, index) => new Writer(nodes.inTurn(index), `w${index}`));
  const followers = [500, 3, 1].map((limit, index) => new LoggingFollower(nodes.apis, index, limit));
  for (const follower of followers) await follower.begin();
  for (const writer of writers) await writer.begin();

  const over = new AbortController();
  const acknowledged = () => writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
  const work = Promise.all([
    ...writers.map(async (writer, index) => {
      const steps = fc.sample(change, { numRuns: 10_000, seed: seed + index });
      for (const step of steps) if (!over.signal.aborted) await writer.make(step);
    }),
    ...followers.map((follower) => follower.followUntil(over.signal)),
  ]);
  // It is awaited after the next fault.
  work.catch(() => undefined);
  const progress = async () => {
    const wanted = acknowledged() + CHANGES;
    await Promise.race([work, eventually(() => expect(acknowledged()).toBeGreaterThanOrEqual(wanted))]);
  };
  const faults = fc.sample(fc.shuffledSubarray([...FAULTS], { minLength: FAULTS.length }), {
    numRuns: ROUNDS,
    seed,
  });
  for (const [index, fault] of faults.flat().entries()) {
    await progress();
    await happen(fault, nodes, index);
  }
  await progress();
  over.abort();
  await work;

  const [first] = nodes.apis;
  if (!first) throw new Error('there are no nodes');
  const entries = await entriesAt(first);
  for (const api of nodes.apis) expect(await linesAt(api)).toEqual(await linesAt(first));
  for (const writer of writers) {
    await writer.tree.expectState();
    await expectLogged(writer, entries, first);
  }
  const made = entries.filter(({ path_lower, rev }) => path_lower.startsWith('/log/') && rev);
  for (const follower of followers) {
    await follower.follow();
    expect(follower.lines).toEqual(await linesAt(first));
    for (const { path_lower, rev } of made)
      expect([path_lower, follower.reported.get(`${path_lower} ${rev}`)]).toEqual([path_lower, 1]);
    const reported = [...follower.reported.keys()].filter((one) => one.startsWith('/log/'));
    expect(reported).toHaveLength(made.length);
  }
  process.stdout.write(
    `faults of nodes: ${acknowledged()} changes acknowledged, ${writers.reduce((sum, { unanswered }) => sum + unanswered, 0)} without an answer\n`,
  );
});

/** How long calls of a service wait for its database at most, in ms. */
const PATIENCE_MS = 10_000;

/** Makes a fault happen. Its pauses only move the next event. */
async function happen(fault: Fault, nodes: Nodes, index: number): Promise<void> {
  const kill = () => nodes.whileKilled(index, () => pause(index * 50));
  const stop = (ms: number) => postgres.whileStopped(() => pause(ms));
  if (fault === 'node') await kill();
  if (fault === 'stop') await stop(index * 100);
  if (fault === 'long stop') await stop(PATIENCE_MS * 1.3);
  if (fault === 'fail over') await postgres.failOver();
  if (fault === 'node and stop') await Promise.all([kill(), stop(500)]);
  if (fault === 'node and fail over') await Promise.all([kill(), postgres.failOver()]);
}
