import type { Clock } from '../../util/clock.ts';
import type { Report } from './report.ts';

/** Last day of fixes for each major version of Node (https://github.com/nodejs/release). Odd versions live half a year. */
const LAST_FIXES: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  22: '2027-04-30',
  24: '2028-04-30',
  26: '2029-04-30',
};

/** Oldest safe version: older ones end a header at `\r\n\rX`, which lets requests be smuggled (CVE-2025-23167). */
const OLDEST = [20, 19, 2] as const;

/** Checks that Node's `version`, like `v24.1.0`, still gets fixes. */
export function checkNode(version: string, report: Report, clock: Clock): void {
  const about = 'node';
  const advice = 'install Node 24 or 22';
  const [major = 0, minor = 0, patch = 0] = version.replace(/^v/, '').split('.').map(Number);
  const ends = LAST_FIXES[major];
  if (isOlder([major, minor, patch]))
    report.fail(
      about,
      `${version} is older than ${OLDEST.join('.')} and has known security holes: ${advice}`,
    );
  else if (major % 2 === 1 || (ends !== undefined && Date.parse(ends) < clock.now()))
    report.warn(about, `${version} gets no more fixes${ends ? ` (they ended on ${ends})` : ''}: ${advice}`);
  else report.ok(about, `${version} gets fixes${ends ? ` until ${ends}` : ''}`);
}

function isOlder(version: readonly number[]): boolean {
  const at = OLDEST.findIndex((part, index) => part !== version[index]);
  return at >= 0 && (version[at] ?? 0) < (OLDEST[at] ?? 0);
}
