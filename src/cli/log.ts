import { systemClock } from '../util/clock.ts';
import type { Log, LogFields } from '../util/log.ts';

/**
 * Writes one line per event to standard error: time, level, event, and the fields as `name=value`. The lines of one turn
 * of the event loop go out in one system call, because a busy gateway writes thousands a second.
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
    const texts = Object.entries(fields).flatMap(([name, value]) =>
      value === undefined ? [] : ` ${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`,
    );
    if (this.#pending === '') setImmediate(() => this.#flush());
    this.#pending += `${time} ${level} ${event}${texts.join('')}\n`;
  }

  #flush(): void {
    const lines = this.#pending;
    this.#pending = '';
    if (lines !== '') this.output.write(lines);
  }
}

/** The log of the `davgate` command. */
export const terminalLog: Log = new TerminalLog(process.stderr);
