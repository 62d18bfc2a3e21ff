import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../support/command.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

/** The suites of Debian's litmus and how many tests each has: fewer would be a suite that stopped early. */
const SUITES = [
  { name: 'basic', tests: 16 },
  { name: 'copymove', tests: 13 },
  { name: 'props', tests: 30 },
  { name: 'locks', tests: 41 },
  { name: 'http', tests: 4 },
];

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;

let journaled: Program;
let journaledData: Awaited<ReturnType<typeof temporaryDirectory>>;

let open: Program;
let openData: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, journaledData, openData] = await Promise.all([
    temporaryDirectory(),
    temporaryDirectory(),
    temporaryDirectory(),
  ]);
  program = await startProgram({ dataDirectory: data.path });
  journaled = await startProgram({
    dataDirectory: journaledData.path,
    args: ['--write-mode', 'back'],
  });
  open = await startProgram({ dataDirectory: openData.path, login: false });
});
afterAll(async () => {
  await Promise.all([program?.stop(), journaled?.stop(), open?.stop()]);
  await Promise.all([data.remove(), journaledData.remove(), openData.remove()]);
});

/** One line of litmus per test: `12. name.......... pass`; a warning or a reason follows the verdict. */
function verdictsOf(output: string): { name: string; verdict: string }[] {
  // It overwrites a line when its verdict is there: only what stands behind the last carriage return counts.
  const lines = output.replace(/^.*\r/gm, '');
  return [...lines.matchAll(/^\s*\d+\. ([\w-]+?)\.* +(.*)$/gm)].map(([, name = '', verdict = '']) => ({
    name,
    verdict: verdict.trim(),
  }));
}

async function runSuite(name: string, tests: number, args: readonly string[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-litmus-'));
  const { output } = await command('litmus', args, { directory, environment: { TESTS: name } });
  const debug = await readFile(join(directory, 'debug.log'), 'utf8').catch(() => '');
  const verdicts = verdictsOf(output);
  expect(
    verdicts.filter(({ verdict }) => verdict !== 'pass'),
    `${output}\n${debug.slice(-4000)}`,
  ).toEqual([]);
  expect(output).not.toMatch(/WARNING/);
  expect(verdicts).toHaveLength(tests);
  await rm(directory, { recursive: true });
}

describe('litmus: every test passes, none skipped, no warning', () => {
  test.each(SUITES)('$name', ({ name, tests }) =>
    runSuite(name, tests, [program.url, program.user, program.password]),
  );

  test.each(SUITES)('$name, on a drive with a journal', ({ name, tests }) =>
    runSuite(name, tests, [journaled.url, journaled.user, journaled.password]),
  );

  // Its own sockets send no login, so only here "Expect: 100-continue" is put to the test.
  test('http, on a drive without a login', () => runSuite('http', 4, [open.url]));
});
