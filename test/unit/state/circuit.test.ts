import { ErrorReply } from '@redis/client';
import { afterEach, expect, test } from 'vitest';
import { BRIDGE_MS, Circuit } from '../../../src/state/redis/circuit.ts';
import { expectSoon } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const circuits: Circuit[] = [];
afterEach(() => {
  for (const circuit of circuits.splice(0)) circuit.close();
});

/** Returns a circuit to a Redis that answers its pings with the results of `ping`. */
function circuitTo(ping: () => Promise<unknown>) {
  const clock = new ManualClock();
  const events: string[] = [];
  const circuit = new Circuit({
    clock,
    ping,
    onAway: (error) => events.push(`away: ${error instanceof Error ? error.message : error}`),
    onBack: () => events.push('back'),
  });
  circuits.push(circuit);
  return { circuit, clock, events };
}

const answered = async () => 'PONG';

test('a command waits for a Redis that has just gone away, and passes when it is back', async () => {
  const { circuit, events } = circuitTo(answered);
  circuit.lost(new Error('lost'));
  const passing = circuit.pass();
  await circuit.connected();
  await passing;
  expect(events).toEqual(['away: lost', 'back']);
  expect(circuit.error).toBeUndefined();
});

test('a command to a Redis that stays away fails with the newest reason, and a later one fails without waiting', async () => {
  const { circuit, clock, events } = circuitTo(answered);
  circuit.lost(new Error('lost'));
  const failing = expect(circuit.pass()).rejects.toThrow('refused');
  circuit.lost(new Error('refused'));
  await clock.advance(BRIDGE_MS);
  await failing;
  // The clock stands still from here on.
  await expect(circuit.pass()).rejects.toThrow('refused');
  expect(events).toEqual(['away: lost']);
});

test('a ping that is not answered opens the circuit within 2 s, and its late answer closes it', async () => {
  let answer: (() => void) | undefined;
  const { circuit, clock, events } = circuitTo(
    () =>
      new Promise<void>((resolve) => {
        answer = resolve;
      }),
  );
  circuit.watch();
  await clock.advance(1_999);
  expect(events).toEqual([]);
  await clock.advance(1);
  await expectSoon(() => events).toEqual(['away: no answer to a ping within 1.5 s']);
  answer?.();
  await circuit.pass();
  expect(events).toEqual(['away: no answer to a ping within 1.5 s', 'back']);
});

test('a Redis that is loading its data is away, and one that refuses the ping for another reason is not', async () => {
  let reply = 'NOPERM this user has no permissions to run the ping command';
  const { circuit, clock, events } = circuitTo(() => Promise.reject(new ErrorReply(reply)));
  circuit.watch();
  for (let pings = 0; pings < 2; pings++) {
    await clock.advance(500);
    await clock.untilSleeping();
  }
  expect(events).toEqual([]);
  reply = 'LOADING Redis is loading the dataset in memory';
  await clock.advance(500);
  await expectSoon(() => events).toEqual([`away: ${reply}`]);
});
