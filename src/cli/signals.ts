import { closeSync, openSync } from 'node:fs';
import { isatty } from 'node:tty';
import { terminalLog } from './log.ts';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;

/**
 * Ends the process at SIGTERM or SIGINT while it starts, until the function that this returns is called: nothing is
 * acknowledged yet. The system does so too, but not for the first process of a container.
 */
export function endWhenAskedWhileStarting(): () => void {
  const end = () => {
    terminalLog.info(
      'davgate ends before it serves; an upgrade that was under way begins again at the next start',
    );
    process.exit(0);
  };
  for (const signal of STOP_SIGNALS) process.once(signal, end);
  return () => {
    for (const signal of STOP_SIGNALS) process.removeListener(signal, end);
  };
}

/**
 * Resolves at the first SIGTERM or SIGINT, and when the terminal goes. A second signal ends the process at once: a
 * person who sends it does not want to wait for the drain, and all that was acknowledged is safe by then. Any other
 * SIGHUP, as service managers send it, calls `reload`, which every command that serves has; without it SIGHUP stops like
 * SIGTERM.
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

/** The system tells a program with SIGHUP as well that its terminal was closed. */
function isTerminalGone(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return false;
  } catch {
    return true;
  }
}
