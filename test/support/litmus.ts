import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { command } from './command.ts';

/** The suites of Debian's litmus with their number of tests: fewer results mean that a suite stopped early. */
export const SUITES = [
  { name: 'basic', tests: 16 },
  { name: 'copymove', tests: 13 },
  { name: 'props', tests: 30 },
  { name: 'locks', tests: 41 },
  { name: 'http', tests: 4 },
] as const;

/** Parses litmus's lines `12. name.......... pass`; a warning or a reason may follow the result. */
function resultsOf(output: string): { name: string; result: string }[] {
  // litmus overwrites a line when the result is known: only the text after the last carriage return counts.
  const lines = output.replace(/^.*\r/gm, '');
  return [...lines.matchAll(/^\s*\d+\. ([\w-]+?)\.* +(.*)$/gm)].map(([, name = '', result = '']) => ({
    name,
    result: result.trim(),
  }));
}

/** Runs suites of litmus with `args`: the URL, the user and the password. Expects every test to pass without a warning. */
export async function passLitmus(
  suites: readonly (typeof SUITES)[number][],
  args: readonly string[],
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-litmus-'));
  const environment = { TESTS: suites.map(({ name }) => name).join(' ') };
  const { output } = await command('litmus', args, { directory, environment });
  const debug = await readFile(join(directory, 'debug.log'), 'utf8').catch(() => '');
  const results = resultsOf(output);
  expect(
    // litmus tests "Expect: 100-continue" on sockets of its own, which have no TLS.
    results.filter(({ result }) => result !== 'pass' && result !== 'SKIPPED (skipping for SSL server)'),
    `${output}\n${debug.slice(-4000)}`,
  ).toEqual([]);
  expect(output).not.toMatch(/WARNING/);
  expect(results, output).toHaveLength(suites.reduce((sum, { tests }) => sum + tests, 0));
  await rm(directory, { recursive: true });
}
