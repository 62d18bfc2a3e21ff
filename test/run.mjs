/**
 * `npm test`: the checks, then all tests; closes with a line `FAILED title: reason` for each test that did not pass,
 * and the line `N passed, N failed`. A check counts as one test.
 * `--project NAME` (repeatable) runs only these vitest projects, and no checks. `--long` runs only the random tests,
 * which do as much as DAVGATE_TEST_EFFORT says, and no checks.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { installSystemPackages } from './system-packages.mjs';

const CHECKS = [
  { name: 'format and lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'types', command: ['tsc', '-p', 'test/tsconfig.json'] },
  { name: 'unused code', command: ['knip'] },
];

/** @param {string[]} command */
function run(command) {
  const { status } = spawnSync('npx', ['--no-install', ...command], { stdio: 'inherit' });
  return status === 0;
}

/**
 * @param {string[]} projects none stands for all
 * @param {string[]} files none stands for all
 */
function runTests(projects, files) {
  const folder = mkdtempSync(join(tmpdir(), 'davgate-test-'));
  const report = join(folder, 'report.json');
  const succeeded = run([
    ...['vitest', 'run', '--config', 'test/vitest.config.ts'],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    ...projects.flatMap((project) => ['--project', project]),
    ...files,
  ]);
  try {
    return { succeeded, ...resultsOf(JSON.parse(readFileSync(report, 'utf8'))) };
  } catch {
    return {
      succeeded: false,
      passed: 0,
      failures: ['the test run: it left no report, so it did not come to its end'],
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * A test that was skipped or never reached has shown nothing, so it counts as failed; so does a file that fell
 * over before its tests ran.
 * @param {{ numPassedTests: number, testResults: {
 *   name: string, status: string, message: string,
 *   assertionResults: { status: string, fullName: string, failureMessages?: string[] }[],
 * }[] }} report
 */
function resultsOf(report) {
  const failures = report.testResults.flatMap((file) => {
    const path = relative(process.cwd(), file.name);
    if (file.status === 'failed' && file.assertionResults.length === 0)
      return [`${path}: ${oneLine(file.message)}`];
    return file.assertionResults
      .filter(({ status }) => status !== 'passed')
      .map((test) => `${path} > ${test.fullName}: ${oneLine(test.failureMessages?.[0] ?? test.status)}`);
  });
  return { passed: report.numPassedTests, failures };
}

/**
 * The message without its stack, short enough for the end of a log.
 * @param {string} message
 */
function oneLine(message) {
  const [text = ''] = message.split(/\n +at /, 1);
  return text.replaceAll(/\s+/g, ' ').slice(0, 500);
}

/** The test files that do more in a long run: those that ask `support/effort.ts` how much, or import one that does. */
function longFiles() {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const sources = files.map((name) => ({ name, text: readFileSync(join('test', name), 'utf8') }));
  const asking = sources.filter(({ text }) => text.includes('/effort.ts'));
  return sources
    .filter(({ name }) => name.endsWith('.test.ts'))
    .filter((test) =>
      asking.some(({ name }) => name === test.name || test.text.includes(`/${basename(name)}'`)),
    )
    .map(({ name }) => join('test', name));
}

function main() {
  const { values } = parseArgs({
    options: { project: { type: 'string', multiple: true }, long: { type: 'boolean' } },
  });
  const { project: projects = [], long: isLong = false } = values;
  const failures = [];
  let passed = 0;
  for (const { name, command } of projects.length === 0 && !isLong ? CHECKS : []) {
    console.log(`\n> ${name}`);
    if (run(command)) passed++;
    else failures.push(`${name}: see above`);
  }
  const missing = installSystemPackages(projects);
  if (missing) failures.push(missing);
  const tests = runTests(projects, isLong ? longFiles() : []);
  passed += tests.passed;
  failures.push(...tests.failures);
  if (!tests.succeeded && tests.failures.length === 0)
    failures.push('the test run: an error outside of any test, see above');
  console.log();
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1;
}

main();
