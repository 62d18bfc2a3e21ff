import { systemClock } from '../util/clock.ts';
import type { Log, LogFields } from '../util/log.ts';

/** How long a line of level `info` waits for others, in ms: a busy gateway writes thousands a second. */
const INFO_MS = 20;

/**
 * Writes one line per event to standard error: time, level, event, and the fields as `name=value`. Lines go out together
 * in one system call: those of one turn of the event loop, and lines of level `info` of a few turns. A kill loses only
 * the latter.
 */
class TerminalLog implements Log {
  #pending = '';

  constructor(private readonly output: NodeJS.WritableStream) {
    process.on('exit', () => this.#flush());
    // The reader may have ended, like `tee` after Ctrl+C. davgate still has to drain.
    output.on('error', () => undefined);
  }

  info(event: string, fields?: LogFields): void {
    this.#add('info', event, fields);
  }

  warn(event: string, fields?: LogFields): void {
    this.#add('warn', event, fields);
  }

  error(event: string, fields?: LogFields): void {
    this.#add('error', event, fields);
  }

  #add(level: keyof Log, event: string, fields: LogFields = {}): void {
    const time = new Date(systemClock.now()).toISOString();
    let texts = '';
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined)
        texts += ` ${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`;
    if (level !== 'info') setImmediate(() => this.#flush());
    else if (this.#pending === '') void systemClock.sleep(INFO_MS).then(() => this.#flush());
    this.#pending += `${time} ${level} ${event}${texts}\n`;
  }

  #flush(): void {
    const lines = this.#pending;
    this.#pending = '';
    if (lines !== '') this.output.write(lines);
  }
}

/** The log of the `davgate` command. */
export const terminalLog: Log = new TerminalLog(process.stderr);
