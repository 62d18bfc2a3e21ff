import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { terminalLog } from '../../../src/cli/log.ts';
import { eventually } from '../../support/eventually.ts';

let written: string[];

beforeEach(() => {
  written = [];
  vi.spyOn(process.stderr, 'write').mockImplementation((lines) => written.push(String(lines)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
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
