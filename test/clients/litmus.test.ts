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

beforeAll(async () => {
  data = await temporaryDirectory();
  program = await startProgram({ dataDirectory: data.path });
});
afterAll(async () => {
  await program.stop();
  await data.remove();
});

/** One line of litmus per test: `12. name.......... pass`; a warning or a reason follows the verdict. */
function verdictsOf(output: string): { name: string; verdict: string }[] {
  return [...output.matchAll(/^\s*\d+\. (\w+)\.+ *(.*)$/gm)].map(([, name = '', verdict = '']) => ({
    name,
    verdict: verdict.trim(),
  }));
}

describe('litmus', () => {
  test.each(SUITES)('$name: every test passes, none skipped, no warning', async ({ name, tests }) => {
    const directory = await mkdtemp(join(tmpdir(), 'davgate-litmus-'));
    const { output } = await command('litmus', [program.url, program.user, program.password], {
      directory,
      environment: { TESTS: name },
    });
    const debug = await readFile(join(directory, 'debug.log'), 'utf8').catch(() => '');
    const verdicts = verdictsOf(output);
    expect(
      verdicts.filter(({ verdict }) => verdict !== 'pass'),
      `${output}\n${debug.slice(-4000)}`,
    ).toEqual([]);
    expect(output).not.toMatch(/WARNING/);
    expect(verdicts).toHaveLength(tests);
    await rm(directory, { recursive: true });
  });
});
