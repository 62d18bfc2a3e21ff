import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';

/** A watchdog wants two signs of life in its time (sd_watchdog_enabled(3)). */
const SIGNS_PER_TIMEOUT = 2;

const MICROSECONDS_PER_MS = 1000;

/** Tells the service manager what davgate does. Each message goes out after the one before it. */
export interface ServiceManager {
  ready(): Promise<void>;
  reloading(): Promise<void>;
  stopping(): Promise<void>;
}

/**
 * Returns systemd's side of sd_notify(3), as a unit with `Type=notify` expects it; without `NOTIFY_SOCKET` all messages are
 * dropped. Node has no Unix datagram sockets, and the npm packages for them compile native code that nobody maintains, so
 * davgate runs systemd's own program `systemd-notify`, which is wherever a unit runs. The unit needs `NotifyAccess=all`.
 */
export function serviceManager(environment: NodeJS.ProcessEnv, log: Log): ServiceManager {
  if (!environment['NOTIFY_SOCKET']) return { ready: noted, reloading: noted, stopping: noted };
  let last = Promise.resolve();
  let isFailing = false;
  const notify = (...messages: string[]): Promise<void> => {
    last = last.then(async () => {
      const reason = await failureOf(messages, environment);
      // Once: a missing program would log at each sign of life.
      if (reason !== undefined && !isFailing)
        log.warn('cannot notify systemd; install systemd-notify, or use Type=exec without WatchdogSec', {
          reason,
        });
      isFailing = reason !== undefined;
    });
    return last;
  };
  const ended = new AbortController();
  let isWatched = false;
  return {
    async ready() {
      await notify('READY=1');
      if (!isWatched) void keepWatchdogQuiet(() => notify('WATCHDOG=1'), environment, ended.signal);
      isWatched = true;
    },
    reloading: () => notify('RELOADING=1'),
    async stopping() {
      ended.abort();
      await notify('STOPPING=1');
    },
  };
}

async function noted(): Promise<void> {}

/** Runs `systemd-notify`. Returns why it failed. */
async function failureOf(
  messages: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  try {
    const child = spawn('systemd-notify', messages, { stdio: 'ignore', env: environment });
    const [code] = await once(child, 'exit');
    return code === 0 ? undefined : `systemd-notify ended with ${code}`;
  } catch (error) {
    // Without memory for a process, `spawn` itself throws.
    return String(error);
  }
}

/** Gives signs of life until `ended`, if the unit has `WatchdogSec`. A blocked event loop gives none. */
async function keepWatchdogQuiet(
  sign: () => Promise<void>,
  { WATCHDOG_USEC: timeout = '', WATCHDOG_PID: pid }: NodeJS.ProcessEnv,
  ended: AbortSignal,
): Promise<void> {
  const periodMs = Number(timeout) / MICROSECONDS_PER_MS / SIGNS_PER_TIMEOUT;
  if (!(periodMs > 0) || (pid !== undefined && Number(pid) !== process.pid)) return;
  while (!ended.aborted) {
    await sign();
    await systemClock.sleep(periodMs, ended).catch(() => undefined);
  }
}
