import { expect, test } from 'vitest';
import { guessesOf } from '../../../../src/service/accounts/guesses.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

function guessed(guesses: ReturnType<typeof guessesOf>, name: string, times: number): boolean[] {
  return Array.from({ length: times }, () => guesses.isTooMany(name));
}

test('ten guesses a minute for each name', async () => {
  const clock = new ManualClock();
  const guesses = guessesOf(clock);
  expect(guessed(guesses, 'a', 11)).toEqual([...Array(10).fill(false), true]);
  expect(guesses.isTooMany('b')).toBe(false);
  await clock.advance(59_999);
  expect(guesses.isTooMany('a')).toBe(true);
  await clock.advance(1);
  expect(guesses.isTooMany('a')).toBe(false);
});

test('a right guess wipes the slate', () => {
  const guesses = guessesOf(new ManualClock());
  guessed(guesses, 'a', 11);
  guesses.forget('a');
  expect(guesses.isTooMany('a')).toBe(false);
});

test('ten thousand names are counted at once; the oldest is forgotten first', () => {
  const guesses = guessesOf(new ManualClock());
  guessed(guesses, 'first', 11);
  guessed(guesses, 'second', 11);
  for (let name = 0; name < 9_999; name++) guesses.isTooMany(`name ${name}`);
  expect([guesses.isTooMany('second'), guesses.isTooMany('first')]).toEqual([true, false]);
});
