import { createRemote, type HttpRemote } from '../../api/client.ts';
import type { Account } from '../../api/current-account.ts';
import type { ApiFailure } from '../../api/errors.ts';
import {
  adviceForRefusedLogin,
  type DriveConfig,
  PUBLIC_SERVICE,
  type RemoteService,
} from '../../config/drive-config.ts';
import { type Clock, elapsedMs } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { pathOf, ROOT } from '../../util/path.ts';
import { type Advice, attempt, gigabytes, type Report } from './report.ts';
import { checkInScratch } from './scratch.ts';
import { Trace } from './trace.ts';

/** Time limit of a call, in ms: shorter than the gateway's, because a person waits. */
const DEADLINE_MS = 10_000;

const LATENCY_CALLS = 5;

/** Above this latency, in ms, everything uncached feels slow. */
const LATENCY_MS_MAX = 1_000;

/** Maximum difference of the clocks, in ms: answers tell whole seconds and take some time to arrive. */
const SKEW_MS_MAX = 30_000;

/** Below this free share, an account will soon be full. */
const FREE_SHARE_MIN = 0.01;

/** The service's errors for an unusable root. */
const ROOT_FAILURES: ReadonlySet<ApiFailure> = new Set(['not-found', 'not-folder', 'malformed-path']);

export interface AccountDeps {
  readonly service: RemoteService;
  readonly report: Report;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Checks a drive's service: host, token, scopes, and every operation that the gateway uses. */
export async function checkAccount(drive: DriveConfig, deps: AccountDeps): Promise<void> {
  const { service, clock } = deps;
  const trace = new Trace();
  const { namespace, root } = drive;
  const options = { ...service, namespace, root, clock, log: silentLog };
  // Throws for a token that no header can carry.
  const opened = await attempt(deps.report, 'login', { scope: 'account_info.read' }, async () =>
    createRemote({ ...options, meter: trace.meter, deadlineMs: DEADLINE_MS }),
  );
  if (!opened) return;
  const remote = opened.result;
  try {
    if (!(await checkLogin(remote, drive, { ...deps, trace })) || !(await checkRoot(remote, drive, deps)))
      return;
    await checkSpace(remote, deps);
    await checkInScratch({ ...deps, remote, deletePolicy: drive.deletePolicy });
    await checkLatency(remote, deps);
  } finally {
    reportTrace(trace, deps.report);
    await remote.close();
  }
}

/** Checks the login. Returns whether further checks make sense. */
async function checkLogin(
  remote: HttpRemote,
  drive: DriveConfig,
  { service, report, signal, trace }: AccountDeps & { readonly trace: Trace },
): Promise<boolean> {
  const advice: Advice = {
    scope: 'account_info.read',
    without: 'clients cannot see the free space',
    fix: ({ failure, details }) =>
      failure === 'unauthorized' ? adviceForRefusedLogin(service.credentials, details.summary) : undefined,
  };
  const failuresBefore = report.failures;
  const found = await attempt(report, 'account', advice, () => remote.account(signal));
  if (report.failures > failuresBefore) return false;
  if (found) report.ok('account', `${found.result.displayName} (${found.result.email}) at ${service.apiUrl}`);
  if (found) report.ok('namespace', namespaceText(drive, found.result));
  checkClock(remote, report);
  if ('refreshToken' in service.credentials) {
    if (trace.hasRefreshed) report.ok('login', 'the refresh token works');
    else report.fail('login', 'the refresh token gave no access token; log in again (davgate login)');
  } else if (service.apiUrl === PUBLIC_SERVICE.apiUrl)
    report.warn('login', 'a fixed token expires after four hours; davgate login makes a login that lasts');
  else report.ok('login', 'the token works');
  return true;
}

function namespaceText({ namespace }: DriveConfig, account: Account): string {
  const { homeNamespace, rootNamespace } = account;
  const ofTeam = rootNamespace !== homeNamespace;
  if (namespace === undefined)
    return ofTeam
      ? `${homeNamespace}, the account’s home; --namespace root shows its team’s space, ${rootNamespace}`
      : `the account’s home`;
  const number = namespace === 'root' ? rootNamespace : namespace;
  const role =
    number === homeNamespace
      ? 'the account’s home'
      : ofTeam && number === rootNamespace
        ? 'the team’s space'
        : 'shared with the account';
  return `${number}, ${role}`;
}

function checkClock(remote: HttpRemote, report: Report): void {
  const { serviceAheadMs } = remote.status();
  const seconds = Math.round(Math.abs(serviceAheadMs) / 1000);
  const skew = `this machine’s clock is ${seconds} s ${serviceAheadMs > 0 ? 'behind' : 'ahead of'} the service’s`;
  if (Math.abs(serviceAheadMs) > SKEW_MS_MAX) report.warn('clock', `${skew}: set it, by NTP if you can`);
  else report.ok('clock', 'agrees with the service’s');
}

/** Checks that the drive's root can be listed. */
async function checkRoot(
  remote: HttpRemote,
  { root }: DriveConfig,
  { report, signal }: AccountDeps,
): Promise<boolean> {
  const advice: Advice = {
    scope: 'files.metadata.read',
    fix: ({ failure }) =>
      ROOT_FAILURES.has(failure)
        ? `the account has no folder ${root}: correct --root ("root" in a configuration file), or make it`
        : undefined,
  };
  const listed = await attempt(report, 'listing', advice, async () => {
    for await (const { changes } of remote.list(ROOT, { recursive: false }, signal)) return changes.length;
    return 0;
  });
  if (listed) report.ok('listing', `${root === '' ? 'the account' : `the root ${root}`} can be listed`);
  return listed !== undefined;
}

async function checkSpace(remote: HttpRemote, { report, signal }: AccountDeps): Promise<void> {
  const advice = { scope: 'account_info.read', without: 'clients cannot see the free space' };
  const found = await attempt(report, 'space', advice, () => remote.quota(signal));
  if (!found) return;
  const quota = found.result;
  if (!quota) {
    report.ok('space', 'the service reports no limit');
    return;
  }
  const freeBytes = Math.max(0, quota.allocatedBytes - quota.usedBytes);
  const text = `${gigabytes(freeBytes)} of ${gigabytes(quota.allocatedBytes)} free in the account`;
  if (freeBytes < quota.allocatedBytes * FREE_SHARE_MIN)
    report.warn('space', `${text}: it will soon be full`);
  else report.ok('space', text);
}

async function checkLatency(remote: HttpRemote, { report, clock, signal }: AccountDeps): Promise<void> {
  const nothing = pathOf(['.davgate-doctor-nothing']);
  const times: number[] = [];
  const asked = await attempt(report, 'latency', { scope: 'files.metadata.read' }, async () => {
    for (let call = 0; call < LATENCY_CALLS; call++) {
      const start = clock.instant();
      await remote.stat(nothing, signal);
      times.push(Math.round(elapsedMs(clock, start)));
    }
  });
  if (!asked) return;
  const median = times.sort((one, other) => one - other)[LATENCY_CALLS >> 1] ?? 0;
  const text = `${median} ms per call, the median of ${LATENCY_CALLS}`;
  if (median > LATENCY_MS_MAX) report.warn('latency', `${text}: everything uncached will be slow`);
  else report.ok('latency', text);
}

function reportTrace({ limited, retried }: Trace, report: Report): void {
  if (limited > 0)
    report.warn(
      'rate',
      `the service limited the rate of calls ${limited} times: another program may use the same app and account`,
    );
  else if (retried > 0)
    report.warn('rate', `${retried} calls had to be retried: the service or the network is unreliable`);
  else report.ok('rate', 'no call was rate-limited or retried');
}
