import { expect, test } from 'vitest';
import { Gateways, ownerOf } from '../../../src/drive/gateways.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** The leases of gateways in one process: a set of the living ones. */
function leasesOf(alive: Set<string>, gateway: string) {
  return {
    gateway,
    async renew() {
      if (alive.has('away')) throw new Error('Redis is away');
      alive.add(gateway);
      return [...alive].sort();
    },
    end: async () => void alive.delete(gateway),
  };
}

async function startedGateways(alive: Set<string>, own: string, clock: ManualClock) {
  const gateways = new Gateways(leasesOf(alive, own), clock);
  let rounds = 0;
  await gateways.start(async () => void rounds++);
  return { gateways, rounds: () => rounds };
}

test('the only gateway takes over at its start whatever an earlier run has left', async () => {
  const gateways = new Gateways(undefined, new ManualClock());
  let rounds = 0;
  await gateways.start(async () => void rounds++);
  expect([rounds, gateways.inherits(undefined), gateways.inherits('a')]).toEqual([1, true, true]);
  expect(ownerOf(gateways.newId())).toBeUndefined();
});

test('the first of the living takes over what a killed gateway has left, and nothing of a living one', async () => {
  const clock = new ManualClock();
  const alive = new Set(['b', 'c']);
  const { gateways: first, rounds } = await startedGateways(alive, 'a', clock);
  const { gateways: second } = await startedGateways(alive, 'b', clock);
  await clock.advance(20_000);
  expect(rounds()).toBeGreaterThan(3);
  expect(['a', 'b', 'c', 'killed', undefined].map((owner) => first.inherits(owner))).toEqual([
    ...[false, false, false],
    ...[true, true],
  ]);
  expect(second.inherits('killed')).toBe(false);
  alive.delete('c');
  await clock.advance(5_000);
  expect(first.inherits('c')).toBe(true);
  await Promise.all([first.close(), second.close()]);
});

test('a gateway takes nothing over until the others had time to renew their leases, at its start and after Redis was away', async () => {
  const clock = new ManualClock();
  const alive = new Set<string>();
  const { gateways } = await startedGateways(alive, 'a', clock);
  expect(gateways.inherits('b')).toBe(false);
  await clock.advance(15_000);
  expect(gateways.inherits('b')).toBe(true);
  alive.add('away');
  await clock.advance(20_000);
  alive.delete('away');
  await clock.advance(5_000);
  expect(gateways.inherits('b')).toBe(false);
  await clock.advance(15_000);
  expect(gateways.inherits('b')).toBe(true);
  await gateways.close();
});

test('a gateway takes over its own work at its start, which an earlier run has left, and not while it runs', async () => {
  const gateways = new Gateways(leasesOf(new Set(['a', 'b']), 'b'), new ManualClock());
  let atStart: boolean | undefined;
  await gateways.start(async () => {
    atStart ??= gateways.inherits('b');
  });
  expect([atStart, gateways.inherits('b')]).toEqual([true, false]);
  await gateways.close();
});

test('an id tells the gateway whose duty it names', () => {
  const gateways = new Gateways(leasesOf(new Set(), 'a1'), new ManualClock());
  expect(ownerOf(gateways.newId())).toBe('a1');
  expect(gateways.newId()).not.toBe(gateways.newId());
});
