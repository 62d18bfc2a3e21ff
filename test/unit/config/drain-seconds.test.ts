import { expect, test } from 'vitest';
import { resolveConfig } from '../../../src/config/configuration.ts';
import { settingsOfArguments } from '../../support/settings.ts';

const drainSecondsOf = (...args: string[]) =>
  resolveConfig(settingsOfArguments(args), undefined, {}, '/nowhere').drainSeconds;

test.each(['0', '30', '600'])('--drain-seconds %s is a number of seconds', (text) => {
  expect(drainSecondsOf('--drain-seconds', text)).toBe(Number(text));
});

test.each(['-1', '1.5', '601', '5s', '0x10'])('--drain-seconds %s is refused', (text) => {
  expect(() => drainSecondsOf(`--drain-seconds=${text}`)).toThrow(
    `--drain-seconds: "${text}" must be a whole number of seconds, at most 600`,
  );
});
