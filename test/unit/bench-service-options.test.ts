import { expect, test } from 'vitest';
import { ChoiceError } from '../bench/choice.ts';
import { benchOptions } from '../bench/service/options.ts';

const WORKS = ['one', 'batch', 'listing'];

test('bench:service runs all works on both kinds of metadata in three rounds, or what the options select', () => {
  expect(benchOptions([], WORKS)).toEqual({
    kinds: ['sqlite', 'postgres'],
    works: WORKS,
    rounds: 3,
    scale: 1,
  });
  const words = ['--metadata', 'postgres', '--only', 'b', '--rounds', '5', '--scale', '0.02'];
  expect(benchOptions(words, WORKS)).toEqual({
    kinds: ['postgres'],
    works: ['batch'],
    rounds: 5,
    scale: 0.02,
  });
});

test.each([
  [['--metadata', 'mysql'], '--metadata mysql: there are sqlite, postgres'],
  [['--only', 'none'], '--only none: no work has a name that begins so; there are "one", "batch", "listing"'],
  [['--rounds', '0'], '--rounds 0: not a number from 1 to 99; write it like 3'],
  [['--scale', '2'], '--scale 2: not a share of the full sizes; write it like 0.02'],
  [['--olny', 'one'], "Unknown option '--olny'; there are --metadata, --only, --rounds and --scale"],
])('the arguments %j of bench:service are refused with one line', (words, message) => {
  const run = () => benchOptions(words, WORKS);
  expect(run).toThrow(ChoiceError);
  expect(run).toThrow(message);
});
