import { expect, test } from 'vitest';
import { plainStart } from '../../../src/cli/plain-start.ts';
import { settingsOfArguments } from '../../support/settings.ts';

test.each([
  [[]],
  [['--listen', '[::1]:0', '--no-auth']],
  [['serve', '--data-dir=/a b', '--password', '-x=y', '--read-only']],
  [['--root=/a=b', '--user', 'ann']],
])('a start with the arguments %j has the same settings without commander as with it', (args) => {
  const ofServe = args[0] === 'serve' ? args.slice(1) : args;
  expect(plainStart(args)).toEqual({ settings: settingsOfArguments(ofServe), isJson: false });
});

test.each([
  ['--lisen', 'x'],
  ['--listen'],
  ['--listen='],
  ['--token', 'a', '--token', 'b'],
  ['--app-key', 'k'],
  ['--no-auth=true'],
  ['--help'],
  ['serve', 'here'],
  ['locks'],
])('the arguments %j are left to commander', (...args) => {
  expect(plainStart(args)).toBeUndefined();
});

test('--json of a start is recognized', () => {
  expect(plainStart(['--json', '--user', 'ann'])?.isJson).toBe(true);
});
