import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { terminalLog } from './log.ts';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Ends the process at SIGTERM or SIGINT while it starts, when nothing is acknowledged yet. Calling the returned function
 * stops that. The system would end the process too, but not the first process of a container.
 */
export function endWhenAskedWhileStarting(): () => void {
  const end = () => {
    terminalLog.info('stopped during startup; an unfinished upgrade starts over at the next start');
    process.exit(0);
  };
  for (const signal of STOP_SIGNALS) process.once(signal, end);
  return () => {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, end);
  };
}

/**
 * Resolves at the first SIGTERM or SIGINT, and when the terminal is closed. A second signal ends the process at once
 * without a drain; everything acknowledged is safe by then. Any other SIGHUP, such as a service manager's, calls `reload`;
 * without `reload` it stops like SIGTERM.
 */
export function untilAskedToStop(reload?: () => void): Promise<void> {
  const hadTerminal = isatty(0) || isatty(1);
  return new Promise((resolve) => {
    let isStopping = false;
    const stop = () => {
      if (isStopping) return;
      isStopping = true;
      resolve();
      for (const signal of STOP_SIGNALS) process.once(signal, () => process.exit(1));
    };
    for (const signal of STOP_SIGNALS) process.once(signal, stop);
    process.on('SIGHUP', () => {
      if (isStopping) return;
      if (reload && !(hadTerminal && isTerminalGone())) reload();
      else stop();
    });
  });
}

/** Whether a SIGHUP means that the terminal was closed. */
function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}
