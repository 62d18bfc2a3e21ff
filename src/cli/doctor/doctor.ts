import { join } from 'node:path';
import { type Config, resolveConfig } from '../../config/configuration.ts';
import { type DriveConfig, embeddedDrives, type RemoteService } from '../../config/drive-config.ts';
import type { Settings } from '../../config/settings.ts';
import { refuseUnsharedFiles } from '../../config/sharing.ts';
import { startEmbeddedService } from '../../service/embedded.ts';
import { type Clock, systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { loadSettings } from '../load-settings.ts';
import { untilAskedToStop } from '../signals.ts';
import { isStartFailure } from '../start-failure.ts';
import { checkAccount } from './account.ts';
import { checkMachine } from './machine.ts';
import { checkNode } from './node.ts';
import { Report } from './report.ts';

/** `davgate doctor`: returns the exit code. */
export async function doctorCommand(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { say, isJson }: { readonly say: (line: string) => void; readonly isJson: boolean },
): Promise<number> {
  const { settings, file } = await loadSettings(flags, environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  refuseUnsharedFiles(settings, config);
  const stop = new AbortController();
  void untilAskedToStop().then(() => stop.abort(new Stopped()));
  const deps = { print: say, isJson, clock: systemClock, nodeVersion: process.version, signal: stop.signal };
  return (await examine(config, deps)) ? 0 : 1;
}

/** The checks were stopped by a signal. */
class Stopped extends Error {
  override readonly name = 'Stopped';
}

export interface ExaminationDeps {
  readonly print: (line: string) => void;
  /** Whether all results are printed together, as JSON. */
  readonly isJson?: boolean;
  readonly clock: Clock;
  /** The running Node's version, like `v24.1.0`. */
  readonly nodeVersion: string;
  /** Stops the checks; their folder in the account is still removed. */
  readonly signal: AbortSignal;
}

/** Runs all checks and prints each result. Returns whether all were run and none failed. */
export async function examine(
  config: Config,
  { print, isJson = false, clock, nodeVersion, signal }: ExaminationDeps,
): Promise<boolean> {
  const report = new Report(isJson ? () => undefined : print);
  report.ok('settings', 'can be used');
  checkNode(nodeVersion, report, clock);
  try {
    const { isRunning } = await checkMachine(config, report, clock);
    for (const drive of config.drives) {
      signal.throwIfAborted();
      if (config.drives.length > 1) report.startDrive(drive.name);
      await checkDrive(drive, { config, isRunning, report, clock, signal });
    }
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    report.fail('stopped', 'not all checks were run');
  }
  report.end();
  if (isJson) print(JSON.stringify({ ok: report.failures === 0, checks: report.results }, undefined, 2));
  return report.failures === 0;
}

interface DriveDeps {
  readonly config: Config;
  readonly isRunning: boolean;
  readonly report: Report;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

async function checkDrive(drive: DriveConfig, { config, isRunning, ...deps }: DriveDeps): Promise<void> {
  if (drive.service !== 'embedded') return checkAccount(drive, { ...deps, service: drive.service });
  if (isRunning) {
    deps.report.warn(
      'service',
      'the embedded service is in use by the running davgate; stop davgate to test it',
    );
    return;
  }
  const embedded = await startedService(config, drive, deps.report);
  if (!embedded) return;
  try {
    // A missing root is made at the next start.
    await checkAccount({ ...drive, root: '' }, { ...deps, service: embedded.service });
  } finally {
    await embedded.close();
  }
}

async function startedService({ dataDirectory, drives }: Config, { name }: DriveConfig, report: Report) {
  const directory = join(dataDirectory, 'service');
  const options = { dataDirectory: directory, drives: embeddedDrives(drives), purpose: 'test' } as const;
  try {
    const { url, tokens, close } = await startEmbeddedService(options, silentLog);
    const token = tokens.get(name) ?? '';
    const service: RemoteService = { apiUrl: url, contentUrl: url, notifyUrl: url, credentials: { token } };
    report.ok('service', `the embedded service runs, with its files in ${directory}`);
    return { service, close };
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    report.fail('service', error.message);
    return undefined;
  }
}
