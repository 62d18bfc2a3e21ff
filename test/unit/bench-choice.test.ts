import { expect, test } from 'vitest';
import { ChoiceError, choose } from '../bench/choice.ts';

const WORKS = {
  remote: ['walk-1', 'walk-8', 'warm'],
  local: ['GET 4 KiB, warm', 'warm too'],
  scaling: ['file'],
  several: ['small'],
};

test('the bench runs all works, those of a group, or those whose name begins with the given text', () => {
  expect(choose([], WORKS)).toEqual(WORKS);
  expect(choose(['--group', 'remote'], WORKS)).toEqual({ ...WORKS, local: [], scaling: [], several: [] });
  expect(choose(['--group=local'], WORKS)).toEqual({ ...WORKS, remote: [], scaling: [], several: [] });
  expect(choose(['--only', 'walk'], WORKS)).toEqual({
    remote: ['walk-1', 'walk-8'],
    local: [],
    scaling: [],
    several: [],
  });
  expect(choose(['--only', 'warm'], WORKS)).toEqual({
    remote: ['warm'],
    local: ['warm too'],
    scaling: [],
    several: [],
  });
});

test.each([
  [
    ['--only', 'no such work'],
    '--only no such work: no work has a name that begins so; there are "walk-1", ',
  ],
  [
    ['--group', 'local', '--only', 'walk'],
    '--only walk: no work has a name that begins so; there are "GET 4 KiB, warm", ',
  ],
  [['--group', 'far'], '--group far: the groups are remote, local, scaling, several'],
  [['--olny', 'warm'], "Unknown option '--olny'"],
])('the arguments %j are refused with one line that lists the choices', (words, start) => {
  const run = () => choose(words, WORKS);
  expect(run).toThrow(ChoiceError);
  expect(run).toThrow(new RegExp(`^${start.replaceAll(/[()+?]/g, '.')}[^\\n]*$`));
});
