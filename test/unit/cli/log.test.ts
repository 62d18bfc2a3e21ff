import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { terminalLog } from '../../../src/cli/log.ts';
import { LogFile } from '../../../src/cli/log-file.ts';
import { eventually } from '../../support/eventually.ts';

let written: string[];

beforeEach(() => {
  written = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((lines) => written.push(String(lines)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
  terminalLog.configure({ level: 'info', format: 'text' });
});

test('info lines of several turns of the event loop are written in one call', async () => {
  terminalLog.info('one');
  await turn();
  terminalLog.info('two', { count: 2 });
  await eventually(() => expect(written).toHaveLength(1));
  expect(written[0]).toMatch(/^\S+ info one\n\S+ info two count=2\n$/);
});

test('a warning is written in the next turn, after the info lines before it', async () => {
  terminalLog.info('one');
  terminalLog.warn('two');
  await turn();
  expect(written.join('')).toMatch(/^\S+ info one\n\S+ warn two\n$/);
});

test('with the format json each line is an object with time, level, event and fields', async () => {
  terminalLog.configure({ level: 'info', format: 'json' });
  terminalLog.warn('one "two"', { count: 2, missing: undefined, path: '/a b' });
  await turn();
  expect(JSON.parse(written.join(''))).toEqual({
    time: expect.stringMatching(/^\d{4}-/),
    level: 'warn',
    event: 'one "two"',
    count: 2,
    path: '/a b',
  });
});

test('with the level warn, lines of the level info are left out', async () => {
  terminalLog.configure({ level: 'warn', format: 'text' });
  terminalLog.info('one');
  terminalLog.warn('two');
  terminalLog.error('three');
  await turn();
  expect(written.join('')).toMatch(/^\S+ warn two\n\S+ error three\n$/);
});

test('lines that the disk of the log file does not take go to standard error', async () => {
  terminalLog.configure({ level: 'info', format: 'text' }, LogFile.open('/dev/full'));
  terminalLog.warn('one');
  await turn();
  expect(written.join('')).toMatch(/^\S+ warn one\n$/);
});
