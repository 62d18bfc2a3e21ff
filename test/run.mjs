/**
 * `npm test`: the checks and all tests; closes with a line `FAILED title: reason` for each test that did not pass,
 * and the line `N passed, N failed`. A check counts as one test.
 * `--project NAME` (repeatable) runs only these vitest projects, and no checks. `--long` runs only the random tests,
 * which do as much as TEST_EFFORT says, and no checks.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { installSystemPackages } from './system-packages.mjs';

const CHECKS = [
  { name: 'format and lint', command: ['biome', 'check', '--error-on-warnings'] },
  { name: 'types', command: ['tsc', '-p', 'test/tsconfig.json'] },
  { name: 'types of the web application', command: ['tsc', '-p', 'src/webapp'] },
  // `npm run bench` compiles them with other options.
  { name: 'types of the benchmarks', command: ['tsc', '-p', 'test/bench/tsconfig.json', '--noEmit'] },
  { name: 'unused code', command: ['knip'] },
];

/**
 * Runs the checks one after the other, and prints what each says when it has ended: the tests run and print meanwhile.
 * Returns a line for each check that failed.
 * @param {typeof CHECKS} checks
 */
async function runChecks(checks) {
  const failures = [];
  for (const { name, command } of checks) {
    const check = spawn('npx', ['--no-install', ...command], { stdio: ['ignore', 'pipe', 'pipe'] });
    const [succeeded, output, errors] = await Promise.all([
      success(check),
      text(check.stdout),
      text(check.stderr),
    ]);
    console.log(`\n> ${name}: ${succeeded ? 'passed' : 'failed'}\n${output}${errors}`);
    if (!succeeded) failures.push(`${name}: see "> ${name}: failed" above`);
  }
  return failures;
}

/**
 * The vitest projects of each half of the tests. Tests of the first half wait for other programs, those of the second half
 * compute: side by side they leave no processor idle.
 */
const HALVES = [
  ['clients', 'alone'],
  ['unit', 'integration', 'postgres'],
];

/** @param {import('node:child_process').ChildProcess} child */
async function success(child) {
  const [status] = await once(child, 'close');
  return status === 0;
}

/**
 * @param {string[]} projects none stands for all
 * @param {string[]} files none stands for all
 */
async function runTests(projects, files) {
  if (!(await success(spawn(process.execPath, ['test/build.mjs'], { stdio: 'inherit' }))))
    return { passed: 0, failures: ['the build: see above'] };
  const isRun = (/** @type {string} */ project) => projects.length === 0 || projects.includes(project);
  const halves = HALVES.map((half) => half.filter(isRun)).filter((half) => half.length > 0);
  const results = await Promise.all(halves.map((half) => runHalf(half, files)));
  return {
    passed: results.reduce((sum, { passed }) => sum + passed, 0),
    failures: results.flatMap(({ failures }) => failures),
  };
}

/**
 * @param {string[]} projects
 * @param {string[]} files none stands for all
 */
async function runHalf(projects, files) {
  const folder = mkdtempSync(join(tmpdir(), 'davgate-test-'));
  const report = join(folder, 'report.json');
  const options = [
    ...['vitest', 'run', '--config', 'test/vitest.config.ts'],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    ...projects.flatMap((project) => ['--project', project]),
    ...['--passWithNoTests', ...files],
  ];
  const env = { ...process.env, TEST_IS_BUILT: '1' };
  const succeeded = await success(spawn('npx', ['--no-install', ...options], { stdio: 'inherit', env }));
  try {
    const results = resultsOf(JSON.parse(readFileSync(report, 'utf8')));
    if (!succeeded && results.failures.length === 0)
      results.failures.push(
        `the tests of ${projects.join(' and ')}: an error outside of any test, see above`,
      );
    return results;
  } catch {
    const what = `the tests of ${projects.join(' and ')}`;
    return { passed: 0, failures: [`${what}: they left no report, so they did not come to their end`] };
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

/**
 * The test files of a long run: those of `long/`, and those that do more in it, because they ask `support/effort.ts` how much
 * or import a file that does.
 */
function longFiles() {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const sources = files.map((name) => ({ name, text: readFileSync(join('test', name), 'utf8') }));
  const asking = sources.filter(({ text }) => text.includes('/effort.ts'));
  return sources
    .filter(({ name }) => name.endsWith('.test.ts'))
    .filter(
      (test) =>
        test.name.startsWith('long/') ||
        asking.some(({ name }) => name === test.name || test.text.includes(`/${basename(name)}'`)),
    )
    .map(({ name }) => join('test', name));
}

async function main() {
  const { values } = parseArgs({
    options: { project: { type: 'string', multiple: true }, long: { type: 'boolean' } },
  });
  const { project: projects = [], long: isLong = false } = values;
  const checks = projects.length === 0 && !isLong ? CHECKS : [];
  const missing = installSystemPackages(projects, isLong);
  const [failedChecks, tests] = await Promise.all([
    runChecks(checks),
    runTests(projects, isLong ? longFiles() : []),
  ]);
  const failures = [...failedChecks, ...(missing ? [missing] : []), ...tests.failures];
  const passed = tests.passed + checks.length - failedChecks.length;
  console.log();
  for (const failure of failures) console.log(`FAILED ${failure}`);
  console.log(`${passed} passed, ${failures.length} failed`);
  process.exitCode = failures.length === 0 && passed > 0 ? 0 : 1;
}

await main();
