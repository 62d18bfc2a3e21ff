import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config/configuration.ts';
import { loginFile } from '../../config/login-file.ts';
import { LISTENER_LIMITS } from '../../http/limits.ts';
import { CertificateError, createNodeServer } from '../../http/node-server.ts';
import { StateInUse, StateUnavailable, StateUnwritable, VolatileState } from '../../state/errors.ts';
import { openRedisState } from '../../state/redis/state.ts';
import { openSqliteState } from '../../state/sqlite/state.ts';
import type { Clock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { checkDirectory, checkLostAndFound, checkSecretFile } from './disk.ts';
import { checkListener } from './listener.ts';
import type { Report } from './report.ts';

/** Warn this many days before a certificate expires. */
const CERTIFICATE_DAYS_MIN = 14;

const DAY_MS = 86_400_000;

/** Checks certificate, directories, state and listener. Returns whether a davgate runs with this data directory. */
export async function checkMachine(
  config: Config,
  report: Report,
  clock: Clock,
): Promise<{ isRunning: boolean }> {
  if (config.tls) checkCertificate(config.tls, report, clock);
  const about = 'data directory';
  const isWritable = await checkDirectory(config.dataDirectory, {
    report,
    about,
    flag: '--data-dir',
    isPrivate: true,
  });
  await checkSecretFile(loginFile(config.dataDirectory), report);
  await checkDirectory(config.cacheDirectory, {
    report,
    about: 'cache',
    flag: '--cache-dir',
    isPrivate: false,
  });
  const isRunning = isWritable && (await checkState(config, report, clock));
  await checkListener(config, report);
  await checkLostAndFound(join(config.dataDirectory, 'lost-and-found'), report);
  return { isRunning };
}

function checkCertificate(tls: NonNullable<Config['tls']>, report: Report, clock: Clock): void {
  const about = 'certificate';
  try {
    createNodeServer(tls, LISTENER_LIMITS, { hasHttp2: false });
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    report.fail(about, error.message);
    return;
  }
  const { validFrom, validTo } = new X509Certificate(readFileSync(tls.certFile));
  const days = Math.floor((Date.parse(validTo) - clock.now()) / DAY_MS);
  if (days < 0) report.fail(about, `${tls.certFile} has expired (${validTo}): get a new one`);
  else if (Date.parse(validFrom) > clock.now())
    report.fail(about, `${tls.certFile} is not valid before ${validFrom}: wait, or set this machine’s clock`);
  else if (days < CERTIFICATE_DAYS_MIN)
    report.warn(about, `${tls.certFile} expires in ${days} days: get a new one`);
  else report.ok(about, `${tls.certFile} matches its key and is valid for ${days} more days`);
}

/** Checks the state. Returns whether a running davgate uses it. */
async function checkState(
  { redisUrl, isRedisVolatile = false, dataDirectory }: Config,
  report: Report,
  clock: Clock,
): Promise<boolean> {
  const about = 'state';
  if (redisUrl !== undefined) {
    await checkRedis({ url: redisUrl, isVolatile: isRedisVolatile }, report, clock);
    return false;
  }
  const directory = join(dataDirectory, 'state');
  if (!existsSync(directory)) {
    report.ok(about, 'none yet: davgate has not run with this data directory');
    return false;
  }
  try {
    await openSqliteState({ directory }).close();
    report.ok(about, `locks and properties in ${directory} can be opened`);
  } catch (error) {
    if (!(error instanceof StateInUse || error instanceof StateUnwritable)) throw error;
    if (error instanceof StateUnwritable) report.fail(about, error.message);
    else report.ok(about, `a davgate is running with ${dataDirectory}`);
    return error instanceof StateInUse;
  }
  return false;
}

async function checkRedis(
  redis: { readonly url: string; readonly isVolatile: boolean },
  report: Report,
  clock: Clock,
): Promise<void> {
  const about = 'state';
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (event: string) => void warnings.push(event) };
  try {
    const state = await openRedisState({ ...redis, clock, log });
    await state.close();
    if (warnings.length === 0) report.ok(about, 'the shared Redis answers');
    for (const warning of warnings) report.warn(about, warning);
  } catch (error) {
    const isKnown =
      error instanceof StateUnavailable || error instanceof StateUnwritable || error instanceof VolatileState;
    if (!isKnown) throw error;
    report.fail(about, error.message);
  }
}
