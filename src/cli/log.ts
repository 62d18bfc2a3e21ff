import type { LogConfig } from '../config/configuration.ts';
import { systemClock } from '../util/clock.ts';
import type { Log, LogFields } from '../util/log.ts';
import type { LogFile } from './log-file.ts';

/** How long a line of level `info` waits for others, in ms: a busy gateway writes thousands a second. */
const INFO_MS = 20;

/** Levels from the least to the most important. */
const LEVELS = ['info', 'warn', 'error'] as const;

/**
 * Writes one line per event to standard error or a file: time, level, event, and the fields as `name=value`, or all of them as
 * JSON. Lines go out together in one system call: those of one turn of the event loop, and lines of level `info` of a few
 * turns. A kill loses only the latter.
 */
class TerminalLog implements Log {
  #pending = '';
  #config: Omit<LogConfig, 'file'> = { level: 'info', format: 'text' };
  #file: LogFile | undefined;
  #last = { ms: 0, text: '' };

  constructor(private readonly output: NodeJS.WritableStream) {
    process.on('exit', () => this.#flush());
    // The reader may have ended, like `tee` after Ctrl+C. davgate still has to drain.
    output.on('error', () => undefined);
  }

  /** Changes the level, the form and the place of the lines that follow. Takes over `file` and closes the one before. */
  configure(config: Omit<LogConfig, 'file'>, file?: LogFile): void {
    this.#flush();
    this.#file?.close();
    this.#config = config;
    this.#file = file;
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
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.#config.level)) return;
    const time = this.#time();
    if (level !== 'info') setImmediate(() => this.#flush());
    else if (this.#pending === '') void systemClock.sleep(INFO_MS).then(() => this.#flush());
    this.#pending +=
      this.#config.format === 'json'
        ? `${JSON.stringify({ time, level, event, ...fields })}\n`
        : `${time} ${level} ${event}${textOf(fields)}\n`;
  }

  /** Thousands of lines a second share few milliseconds. */
  #time(): string {
    const ms = systemClock.now();
    if (ms !== this.#last.ms) this.#last = { ms, text: new Date(ms).toISOString() };
    return this.#last.text;
  }

  #flush(): void {
    const lines = this.#pending;
    this.#pending = '';
    if (lines !== '') (this.#file ?? this.output).write(lines);
  }
}

function textOf(fields: LogFields): string {
  let texts = '';
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined) texts += ` ${name}=${typeof value === 'string' ? JSON.stringify(value) : value}`;
  }
  return texts;
}

/** The log of the `davgate` command. */
export const terminalLog = new TerminalLog(process.stderr);
