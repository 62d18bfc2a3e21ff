/**
 * `npm test`: the checks, then all tests; closes with the line `N passed, N failed`. A check counts as one test.
 * `--project NAME` (repeatable) runs only these vitest projects, and no checks.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/** @param {string[]} projects */
function runTests(projects) {
  const folder = mkdtempSync(join(tmpdir(), 'davgate-test-'));
  const report = join(folder, 'report.json');
  const succeeded = run([
    ...['vitest', 'run', '--config', 'test/vitest.config.ts'],
    ...['--reporter=default', '--reporter=json', `--outputFile.json=${report}`],
    ...projects.flatMap((project) => ['--project', project]),
  ]);
  try {
    return { succeeded, ...countsOf(JSON.parse(readFileSync(report, 'utf8'))) };
  } catch {
    console.error('The test run left no report: it did not come to its end.');
    return { succeeded: false, passed: 0, failed: 0 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * A test that was skipped or never reached has shown nothing, so it counts as failed; so does a file that fell
 * over before its tests ran.
 * @param {{ numTotalTests: number, numPassedTests: number, testResults: { status: string, assertionResults: unknown[] }[] }} report
 */
function countsOf(report) {
  const fallen = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  ).length;
  return { passed: report.numPassedTests, failed: report.numTotalTests - report.numPassedTests + fallen };
}

function main() {
  const projects = process.argv.slice(2).filter((word) => word !== '--project');
  let passed = 0;
  let failed = 0;
  for (const { name, command } of projects.length === 0 ? CHECKS : []) {
    console.log(`\n> ${name}`);
    if (run(command)) passed++;
    else failed++;
  }
  const missing = installSystemPackages(projects);
  if (missing) {
    console.error(missing);
    failed++;
  }
  const tests = runTests(projects);
  passed += tests.passed;
  failed += tests.failed === 0 && !tests.succeeded ? 1 : tests.failed;
  console.log(`\n${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

main();
