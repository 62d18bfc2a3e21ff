import { systemClock } from '../util/clock.ts';
import type { Log, LogFields } from '../util/log.ts';

let waiting = '';

/** Lines of one turn of the event loop go out in one system call: a busy gateway writes thousands a second. */
function write(level: string, event: string, fields: LogFields = {}): void {
  const time = new Date(systemClock.now()).toISOString();
  const facts = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`,
  );
  if (waiting === '') setImmediate(flush);
  waiting += `${time} ${level} ${event}${facts.join('')}\n`;
}

function flush(): void {
  const lines = waiting;
  waiting = '';
  if (lines !== '') process.stderr.write(lines);
}

process.on('exit', flush);

// Whoever read it may be gone, as tee is after Ctrl+C: no reason to end before all is drained.
process.stderr.on('error', () => undefined);

/** One line an event on standard error: time, level, what happened, and the facts as `name=value`. */
export const terminalLog: Log = {
  info: (event, fields) => write('info', event, fields),
  warn: (event, fields) => write('warn', event, fields),
  error: (event, fields) => write('error', event, fields),
};
