import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { command } from '../support/command.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

/** The suites of Debian's litmus with their number of tests: fewer results mean that a suite stopped early. */
const SUITES = [
  { name: 'basic', tests: 16 },
  { name: 'copymove', tests: 13 },
  { name: 'props', tests: 30 },
  { name: 'locks', tests: 41 },
  { name: 'http', tests: 4 },
];

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;

let writeBack: Program;
let writeBackData: Awaited<ReturnType<typeof temporaryDirectory>>;

let withoutLogin: Program;
let withoutLoginData: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, writeBackData, withoutLoginData] = await Promise.all([
    temporaryDirectory(),
    temporaryDirectory(),
    temporaryDirectory(),
  ]);
  program = await startProgram({ dataDirectory: data.path });
  writeBack = await startProgram({
    dataDirectory: writeBackData.path,
    args: ['--write-mode', 'back'],
  });
  withoutLogin = await startProgram({ dataDirectory: withoutLoginData.path, login: false });
});
afterAll(async () => {
  await Promise.all([program?.stop(), writeBack?.stop(), withoutLogin?.stop()]);
  await Promise.all([data.remove(), writeBackData.remove(), withoutLoginData.remove()]);
});

/** Parses litmus's lines `12. name.......... pass`; a warning or a reason may follow the result. */
function resultsOf(output: string): { name: string; result: string }[] {
  // litmus overwrites a line when the result is known: only the text after the last carriage return counts.
  const lines = output.replace(/^.*\r/gm, '');
  return [...lines.matchAll(/^\s*\d+\. ([\w-]+?)\.* +(.*)$/gm)].map(([, name = '', result = '']) => ({
    name,
    result: result.trim(),
  }));
}

async function runSuite(name: string, tests: number, args: readonly string[]): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-litmus-'));
  const { output } = await command('litmus', args, { directory, environment: { TESTS: name } });
  const debug = await readFile(join(directory, 'debug.log'), 'utf8').catch(() => '');
  const results = resultsOf(output);
  expect(
    results.filter(({ result }) => result !== 'pass'),
    `${output}\n${debug.slice(-4000)}`,
  ).toEqual([]);
  expect(output).not.toMatch(/WARNING/);
  expect(results).toHaveLength(tests);
  await rm(directory, { recursive: true });
}

describe('litmus', () => {
  test.each(SUITES)('all tests of the litmus suite $name pass without a warning', ({ name, tests }) =>
    runSuite(name, tests, [program.url, program.user, program.password]),
  );

  test.each(SUITES)(
    'all tests of the litmus suite $name pass without a warning with write-back',
    ({ name, tests }) => runSuite(name, tests, [writeBack.url, writeBack.user, writeBack.password]),
  );

  // The suite's own sockets send no login, so only here it really tests "Expect: 100-continue".
  test('all tests of the litmus suite http pass without a warning on a drive without a login', () =>
    runSuite('http', 4, [withoutLogin.url]));
});
