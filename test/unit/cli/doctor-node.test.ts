import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { checkNode } from '../../../src/cli/doctor/node.ts';
import { Report } from '../../../src/cli/doctor/report.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** Returns doctor's line about a version of Node in November 2026. */
function reportOn(version: string): string {
  const lines: string[] = [];
  const clock = new ManualClock(Date.parse('2026-11-22'));
  checkNode(version, new Report((line) => void lines.push(line)), clock);
  return lines.join('\n');
}

test.each(['v18.20.0', 'v20.18.1', 'v20.19.1'])(
  'doctor fails Node %s, whose HTTP parser allows request smuggling',
  (version) => {
    expect(reportOn(version)).toMatch(/^FAIL +node +v\S+ is older than 20\.19\.2 .*: install Node 24 or 22$/);
  },
);

test.each(['v20.19.2', 'v20.20.2', 'v21.0.0', 'v25.1.0'])(
  'doctor warns of Node %s, which gets no more fixes',
  (version) => {
    expect(reportOn(version)).toMatch(/^warn +node +v\S+ gets no more fixes.*: install Node 24 or 22$/);
  },
);

test.each(['v22.0.0', 'v24.11.0', 'v26.0.0', 'v28.0.0'])('doctor reports ok for Node %s', (version) => {
  expect(reportOn(version)).toMatch(/^ok +node /);
});

test('package.json refuses every Node that doctor fails, and no other', () => {
  const file = join(import.meta.dirname, '../../../package.json');
  const { engines } = JSON.parse(readFileSync(file, 'utf8')) as { engines: { node: string } };
  const [, oldest] = /older than (\S+) /.exec(reportOn('v18.0.0')) ?? [];
  expect(engines.node).toBe(`>=${oldest}`);
});
