import { setTimeout } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Batches } from '../../../src/service/postgres/batches.ts';
import { SharedLookup } from '../../../src/service/postgres/shared-lookup.ts';
import { eventually } from '../../support/eventually.ts';
import { Gate } from '../../support/gate.ts';

/** Batches of at most three numbers. A batch ends when the test opens its gate. */
function gated() {
  const ran: { readonly items: readonly number[]; readonly gate: Gate }[] = [];
  const batches = new Batches<number>(3, (items) => {
    const gate = new Gate();
    ran.push({ items, gate });
    return gate.pass();
  });
  return { batches, ran, items: () => ran.map(({ items }) => items) };
}

test('what comes together shares a batch, and what comes meanwhile the next ones, in order', async () => {
  const { batches, ran, items } = gated();
  for (const number of [1, 2]) batches.add(number);
  await eventually(() => expect(items()[0]).toEqual([1, 2]));
  for (const number of [3, 4, 5, 6]) batches.add(number);
  ran[0]?.gate.open();
  await eventually(() =>
    expect(items().slice(0, 2)).toEqual([
      [1, 2],
      [3, 4, 5],
    ]),
  );
  ran[1]?.gate.open();
  await eventually(() => expect(items()).toEqual([[1, 2], [3, 4, 5], [6]]));
  ran[2]?.gate.open();
});

test('a batch that does not end holds up the next ones for a moment only, until four do not end', async () => {
  const { batches, ran, items } = gated();
  for (let number = 1; number <= 15; number++) batches.add(number);
  await eventually(() => expect(items()).toHaveLength(4));
  await setTimeout(500);
  expect(items()).toHaveLength(4);
  ran[2]?.gate.open();
  await eventually(() => expect(items().at(4)).toEqual([13, 14, 15]));
  for (const { gate } of ran) gate.open();
});

test('a lookup answers each key once, also one that nobody knows, and tells all who asked why it failed', async () => {
  const asked: (readonly string[])[] = [];
  const lookup = new SharedLookup<string, number>(async (keys) => {
    asked.push(keys);
    if (keys.includes('bad')) throw new Error('away');
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, key.length]));
  });
  expect(await Promise.all(['a', 'bbb', 'none', 'a'].map((key) => lookup.of(key)))).toEqual([
    1,
    3,
    undefined,
    1,
  ]);
  expect(asked).toEqual([['a', 'bbb', 'none']]);
  const failed = await Promise.allSettled(['a', 'bad'].map((key) => lookup.of(key)));
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await lookup.of('a')).toBe(1);
});
